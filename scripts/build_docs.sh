#!/usr/bin/env bash
# Build the documentation site into site/: README.md, docs/ and the pages that they link to. A warning or a dead link is
# an error. It needs neither torch nor the toolkit: docs/requirements.txt goes into an environment of its own, .venv-docs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stamp=.venv-docs/requirements.txt
if ! cmp -s docs/requirements.txt "$stamp"; then
    echo "== installing docs/requirements.txt into .venv-docs"
    rm -rf .venv-docs
    "${PYTHON:-python3}" -m venv .venv-docs
    .venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
    cp docs/requirements.txt "$stamp"
fi

pages="$(mktemp -d)"
trap 'rm -rf "$pages"' EXIT
.venv-docs/bin/python scripts/docs_source.py "$pages"
rm -rf site
.venv-docs/bin/python -m sphinx --fail-on-warning --keep-going --quiet -c docs -d "$pages/.doctrees" "$pages" site
echo "open site/index.html"
