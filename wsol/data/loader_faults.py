"""A loader process that the system ended: torch says so in a RuntimeError, which becomes one line here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wsol.errors import DataError


@contextmanager
def loader_faults_named() -> Iterator[None]:
    """Within this block, the end of a loader process is a DataError.

    torch notices it in a signal handler, so the RuntimeError comes up anywhere, not only at the loader.
    """
    try:
        yield
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise DataError(
            "a process that reads images was ended by the system, often because memory is short "
            f"({' '.join(str(error).split())[:120]}); run the command again (wsol train with --resume) with "
            "fewer such processes: data.workers in the config, 0 for none"
        ) from None
