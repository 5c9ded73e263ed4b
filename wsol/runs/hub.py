"""Packs on the Hugging Face Hub: `hf://owner/name`, or `hf://owner/name@revision` for one state of it.

The package huggingface_hub does the talking. It knows the user's token, keeps what was downloaded, and uses
that where there is no network. Here is only what a pack needs on top: no other file is downloaded, and every
failure is one line.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wsol.errors import ConfigError, RunFolderError, WsolError
from wsol.notices import note
from wsol.runs.folder import RunFolder
from wsol.runs.manifest import BESIDE
from wsol.version import __version__

# `Path` makes one slash of two.
_ADDRESS = re.compile(r"hf:/{1,2}(?P<name>[\w.-]+/[\w.-]+?)(?:@(?P<revision>[\w./-]+?))?/?")
_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def local_folder(place: Path | str) -> Path:
    """The folder `place`; or of an address `hf://...` the folder that it was downloaded to."""
    text = str(place)
    if not text.startswith("hf:/"):
        return Path(place)
    address = _ADDRESS.fullmatch(text)
    if address is None:
        shown = "hf://" + text.removeprefix("hf:").lstrip("/")
        raise ConfigError(
            f"{shown}: not an address on the hub: write hf://owner/name or hf://owner/name@revision"
        )
    return download(address["name"], address["revision"])


def download(name: str, revision: str | None = None) -> Path:
    """The folder of a pack from the hub. Its list of files is looked at before any of them is downloaded."""
    hub = _package()
    pack = RunFolder(name)
    shown = f"hf://{name}" + (f"@{revision}" if revision else "")
    with _one_line(shown), _bars_on_terminals(hub):
        files = _list_files(hub, name, revision)
        if files is not None and pack.manifest.name not in files:
            raise RunFolderError(f"{shown}: not a pack of wsol: it has no {pack.manifest.name}")
        wanted = [file for file in files or () if pack.is_pack_file(file)]
        extra = [file for file in files or () if file not in wanted and file.split("/")[0] not in BESIDE]
        if extra:
            raise RunFolderError(f"{shown}: {extra[0]!r} is no part of a pack; nothing was downloaded")
        folder = hub.snapshot_download(
            name,
            revision=revision,
            allow_patterns=wanted,
            local_files_only=files is None,
            library_name="wsol",
            library_version=__version__,
        )
    if files is None:
        note(f"{shown}: the hub cannot be reached; using what was downloaded before")
    return Path(folder)


def _list_files(hub: Any, name: str, revision: str | None) -> list[str] | None:
    """The files of a repository; None where the hub cannot be reached."""
    api = hub.HfApi(library_name="wsol", library_version=__version__)
    try:
        return [file.rfilename for file in api.model_info(name, revision=revision).siblings or ()]
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError):
        raise  # it was reached, and said no
    except Exception:  # of whichever package makes the connection, in its own class
        return None


def upload(folder: Path, name: str, private: bool) -> str:
    """Make the repository `name` hold these files and no others; returns its address for a browser."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"{name}: not a name on the hub: write owner/name")
    hub = _package()
    with _one_line(name), _bars_on_terminals(hub):
        api = hub.HfApi(library_name="wsol", library_version=__version__)
        url = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name,
            folder_path=folder,
            commit_message=f"wsol {__version__}: the pack {folder.resolve().name}",
            ignore_patterns=[".*", "*/.*"],
            delete_patterns=["*"],
        )
        return str(url)


def _package() -> Any:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise WsolError("the hub needs the package huggingface_hub: pip install 'wsol[hub]'")
    import huggingface_hub
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


@contextmanager
def _bars_on_terminals(hub: Any) -> Iterator[None]:
    """Bars of progress only where someone watches, as everywhere in this package."""
    if sys.stderr.isatty() or hub.utils.are_progress_bars_disabled():
        yield
        return
    hub.utils.disable_progress_bars()
    try:
        yield
    finally:
        hub.utils.enable_progress_bars()


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Every failure of the hub as one line about `what`."""
    from huggingface_hub import errors

    try:
        yield
    except WsolError:
        raise
    except errors.GatedRepoError:
        raise RunFolderError(f"{what}: its owner has to let you in: ask on its page on the hub") from None
    except errors.RevisionNotFoundError:
        raise RunFolderError(f"{what}: the hub has no such revision") from None
    except errors.RepositoryNotFoundError:
        raise RunFolderError(
            f"{what}: not on the hub, or private; check the name, or log in first (hf auth login)"
        ) from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in (401, 403):
            raise RunFolderError(
                f"{what}: the hub does not allow that; log in first (hf auth login) with a token that may"
            ) from None
        raise RunFolderError(f"{what}: the hub answers {status}: {_first_line(error)}") from None
    except errors.LocalEntryNotFoundError:
        raise RunFolderError(
            f"{what}: the hub cannot be reached, and it was not downloaded before; check the network"
        ) from None
    except Exception as error:  # of whichever package makes the connection
        raise RunFolderError(
            f"{what}: the hub cannot be reached, or does not answer as it should "
            f"({type(error).__name__}: {_first_line(error)}); check the network"
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
