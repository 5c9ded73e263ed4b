#!/usr/bin/env bash
# Lint, type-check and test; extra arguments go to pytest: scripts/test.sh tests/gpca -k mask
# scripts/test.sh --all runs the long tests too.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
started=$SECONDS
if [[ "${1:-}" == --all ]]; then shift; set -- -m "" "$@"; fi
step() { echo "== $*"; local t=$SECONDS; "$@"; echo "== done in $((SECONDS - t)) s"; }
step ruff check .
step ruff format --check .
step mypy
# One process per core, each with one thread: torch would otherwise start a thread per core in every process.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
step python -m pytest -n "${WSOL_TEST_PROCESSES:-2}" --dist worksteal "$@"
echo "== all in $((SECONDS - started)) s"
