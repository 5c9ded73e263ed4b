"""Errors that a user or a machine can cause. The command line prints each as one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wsol.printable import printable


class WsolError(Exception):
    """Base of every error that is meant for a user: one line that says what, where and what to do.

    details: further lines, where many things of one kind are wrong.
    """

    exit_code = 2
    details: tuple[str, ...] = ()


class ConfigError(WsolError):
    """A configuration with a fault: unknown key, wrong type, unknown component or option."""


class DataError(WsolError):
    """Files, annotations or archives that are not what they should be."""

    @classmethod
    def at(cls, path: Path | str, line: int | None, reason: str) -> DataError:
        """The error `file:line: reason`, as compilers print it.

        Characters of a file name that cannot be printed are shown as escapes, so this is one line of text.
        """
        place = f"{path}:{line}" if line is not None else f"{path}"
        return cls(printable(f"{place}: {reason}"))

    @classmethod
    def listing(cls, message: str, details: Sequence[str]) -> DataError:
        """The error of several faults: the message with the first of them, all of them in `details`."""
        more = f" (and {len(details) - 1:,} more)" if len(details) > 1 else ""
        error = cls(f"{message}: {details[0]}{more}")
        error.details = tuple(details)
        return error


class CheckpointError(WsolError):
    """A checkpoint or weights file that is missing, damaged, unsafe or of another model."""


class RunFolderError(WsolError):
    """A run or output folder that is in use, not empty, or not what was asked for."""


class TrainingStopped(WsolError):
    """Training was stopped by a signal and has saved where it stands; the exit code is 128 + the signal."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class TrainingDiverged(WsolError):
    """The loss became NaN or infinite; the weights were left as they were before that step."""

    exit_code = 3
