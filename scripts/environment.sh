# Sourced by the other scripts: enters the repository, makes .venv where it is missing or where
# requirements.txt changed since it was made, and puts it on PATH. A stamp holds the digest of
# requirements.txt, so a second run starts at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-python3}"
"$python" - <<'CHECK' || { echo "error: needs python3 >= 3.11 (set PYTHON=/path/to/python3.11)" >&2; exit 2; }
import sys
sys.exit(sys.version_info < (3, 11))
CHECK

stamp=.venv/requirements.sha256
digest="$("$python" -c 'import hashlib, sys; print(hashlib.sha256(open("requirements.txt", "rb").read() + sys.version.encode()).hexdigest())')"
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$digest" ]; then
    started=$SECONDS
    echo "== installing requirements.txt into .venv (a few minutes the first time)"
    # Made anew rather than patched: an old environment may hold what the new one must not.
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
    echo "$digest" > "$stamp"
    echo "== installed in $((SECONDS - started)) s"
fi
export PATH="$PWD/.venv/bin:$PATH"
