"""The manifest of a pack: the name and the SHA-256 digest of every file in it.

    {"format": 1, "name": "vgg16-adl", "wsol": "0.8.0", "files": {"config.yaml": "9f86d0...", ...}}

A folder in a pack is a pack of its own. The digest of its manifest stands here, under
`source/manifest.json`, and its other files stand in that manifest.

It finds damage: a flipped byte, a missing file, a file too many. It is no signature: who changes a file can
change the manifest too. So a pack holds no file that is executed, whoever made it: plain text, JSON, a
picture, and weights as safetensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from wsol.errors import RunFolderError
from wsol.runs.files import open_regular, write_json
from wsol.version import __version__

FORMAT = 1
# What git and the hub's own tools put beside the files that they copy.
BESIDE = (".git", ".gitattributes", ".cache")


def write_manifest(manifest: Path, name: str) -> None:
    """Write the manifest of all files that lie beside it, and of the manifests of the packs beside it."""
    listed = [
        path / manifest.name if path.is_dir() else path
        for path in sorted(manifest.parent.iterdir())
        if path != manifest
    ]
    files = {path.relative_to(manifest.parent).as_posix(): _digest(path) for path in listed}
    write_json(manifest, {"format": FORMAT, "name": name, "wsol": __version__, "files": files})


def read_manifest(manifest: Path, allowed: Collection[str]) -> dict[str, Any]:
    """The manifest, after every file beside it was compared with it.

    allowed: the files that a pack can have. The files of a pack inside of it are not looked at here.

    Raises:
        RunFolderError: a file is damaged, missing, or no part of the pack.
    """
    folder = manifest.parent
    record = _read(manifest)
    files = record["files"]
    known = {name.partition("/")[0] for name in files} | {manifest.name, *BESIDE}
    extra = [path.name for path in sorted(folder.iterdir()) if path.name not in known]
    unknown = [name for name in files if name not in allowed]
    if extra or unknown:
        raise RunFolderError(
            f"{folder}: {(extra + unknown)[0]!r} is no part of a pack; nothing was loaded: remove it, "
            "or get the pack again from where it came from"
        )
    for name, digest in files.items():
        path = folder / name
        if not path.exists():
            raise RunFolderError(f"{folder}: {name} is missing in this pack; get the pack again")
        if _digest(path) != digest:
            raise RunFolderError(
                f"{path}: damaged or changed: its content does not match the SHA-256 digest in "
                f"{manifest.name}; delete this folder and get the pack again"
            )
    return record


def _read(manifest: Path) -> dict[str, Any]:
    try:
        with open_regular(manifest) as file:
            record = json.loads(file.read())
        if record["format"] > FORMAT:
            raise RunFolderError(
                f"{manifest}: format {record['format']} is newer than this wsol; update wsol"
            )
        files = {str(name): str(digest) for name, digest in record["files"].items()}
        return {"name": str(record["name"]), "wsol": str(record["wsol"]), "files": files}
    except OSError as error:
        raise RunFolderError(f"{manifest}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RunFolderError(f"{manifest}: not the manifest of a pack; get the pack again") from None


def _digest(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can readinto
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
