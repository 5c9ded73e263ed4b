"""`python -m wsol COMMAND`."""

from wsol.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
