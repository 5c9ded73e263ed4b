"""Folders for results: one that holds something is not written into; and names of the files in them."""

from __future__ import annotations

import re
from pathlib import Path

from wsol.errors import RunFolderError
from wsol.runs.file_names import LONGEST, fit_name


def claim_folder(folder: Path, overwrite: bool = False, option: str = "--out") -> Path:
    """The folder for results, made where it is missing; one that holds something is refused.

    option: what named the folder.
    """
    try:
        if folder.exists() and not overwrite and any(folder.iterdir()):
            raise RunFolderError(f"{folder}: not empty; choose another {option} or allow it with --overwrite")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    return folder


def file_name(text: str, suffix: str, longest: int = LONGEST) -> str:
    """Any text, such as the name of an image with its folders, as a file name: what is no letter, digit,
    point or dash becomes an underscore."""
    return fit_name(re.sub(r"[^\w.-]+", "_", text), suffix, longest)
