#!/usr/bin/env bash
# Run the tests with the oldest packages that pyproject.toml allows; extra arguments go to pytest:
#   scripts/test_lower_bounds.sh [-k mask]
# The environment is .venv-lower; delete it to make it anew. PYTHON names the interpreter: the oldest packages have
# wheels for Python 3.11 and 3.12 alone. Downloads several GB (torch).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
home=.venv-lower
if [ ! -f "$home/complete" ]; then
    rm -rf "$home"
    "${PYTHON:-python3}" -m venv "$home"
    # Every `name>=bound` of the package and of its extras becomes `name==bound`. The tools and references of the tests are
    # taken in any version that fits: their pins want a newer NumPy.
    "$home/bin/python" - > "$home/bounds.txt" <<'BOUNDS'
import re, tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
wanted = [*project["dependencies"], *(r for rs in project["optional-dependencies"].values() for r in rs)]
names = set()
for requirement in wanted:
    name, bound = re.fullmatch(r"([\w.-]+)>=([\w.]+)(?:,.*)?", requirement).groups()
    names.add(name.lower())
    print(f"{name}=={bound}")
for line in Path("requirements.txt").read_text().splitlines():
    name, pin, _ = line.partition("==")
    if pin and name.lower() not in names:
        print(name)
BOUNDS
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check -r "$home/bounds.txt"
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -e .
    touch "$home/complete"
fi
export PATH="$PWD/$home/bin:$PATH" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
exec python -m pytest -n "${WSOL_TEST_PROCESSES:-2}" --dist worksteal "$@"
