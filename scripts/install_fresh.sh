#!/usr/bin/env bash
# Build the wheel, install it with everything that it needs into a new environment outside of the clone, and use it:
#   scripts/install_fresh.sh [FOLDER]        default: a temporary folder, removed at the end
# Downloads several GB (torch). PYTHON names the interpreter. Prints how long each part took.
set -euo pipefail
repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    folder="$(cd "$1" && pwd)"
else
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' EXIT
fi
step() { echo "== $*"; local t=$SECONDS; "$@"; echo "== done in $((SECONDS - t)) s"; }

# A copy of what git knows, so that no folder build/ appears in the clone.
rm -rf "$folder/source" "$folder/dist" "$folder/environment" "$folder/try"
mkdir -p "$folder/source" "$folder/try"
git -C "$repository" archive HEAD | tar -x -C "$folder/source"
"${PYTHON:-python3}" -m venv "$folder/environment"
export PATH="$folder/environment/bin:$PATH"
unset PYTHONPATH
step python -m pip install --quiet --disable-pip-version-check build
step python -m build --outdir "$folder/dist" "$folder/source"    # the sdist, and the wheel out of it
step python -m pip install --quiet --disable-pip-version-check "$folder"/dist/wsol-*.whl
du -sh "$folder/environment"

cd "$folder/try"
step wsol doctor
step wsol configs
step wsol demo --fast
