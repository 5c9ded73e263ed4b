#!/usr/bin/env bash
# The whole story on painted birds; extra arguments go to `wsol demo`.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python -m wsol demo "$@"
