"""`wsol.pack` and `wsol.push`: hand a trained localizer on."""

from __future__ import annotations

import re
from pathlib import Path

from wsol.api.packing import refuse_unpackable, write_packed, write_unpacked
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.notices import note
from wsol.run import Run
from wsol.runs.files import replacing_folder, write_json, write_text
from wsol.runs.folder import RunFolder, default_run_dir, is_free
from wsol.runs.hub import upload
from wsol.runs.manifest import write_manifest
from wsol.views.model_card import draw_pictures, make_card, render_card

_LICENSE = re.compile(r"[a-z0-9.-]+")


def pack(
    run: Run | Path | str,
    out: Path | str,
    *,
    picture: bool = True,
    license: str | None = None,
    data: Path | str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a trained localizer as one folder to hand on; returns that folder.

    It holds the weights as safetensors, the config, the classes, the scores, a model card with a picture, and
    a manifest with the SHA-256 digest of every file. It opens like a run, on any machine: `wsol.load(out)`,
    `wsol.evaluate(out, data=...)`. Paths of this machine are left out. A refined run is packed with the model
    that gives its classes, in the folder `source`.

    Args:
        run: a run of a trained localizer, or its folder.
        out: the new folder.
        picture: show test images in the card. Say False where you may not publish them.
        license: an identifier for the card, as the hub writes them: mit, cc-by-nc-4.0, ...
        data: where the data set is now, if it was moved; for the picture.
        overwrite: replace a pack that lies there.

    Raises:
        RunFolderError: the folder is taken, or the scores are of another checkpoint than the run's.
        ConfigError: a run of a plain classifier, or one that needs Python code to know its classes.

    >>> import wsol
    >>> folder = wsol.pack("runs/demo", "packs/demo")
    >>> sorted(p.name for p in folder.iterdir() if p.suffix in (".md", ".safetensors"))
    ['README.md', 'weights.safetensors']
    >>> wsol.load(folder, device="cpu").classes == wsol.load("runs/demo", device="cpu").classes
    True
    """
    if license is not None and _LICENSE.fullmatch(license) is None:
        raise ConfigError(f"license {license!r}: expected an identifier such as mit or cc-by-nc-4.0")
    opened = Run(run.path if isinstance(run, Run) else run, data)
    opened.folder.refuse_pack("copy the folder instead")
    refuse_unpackable(opened)
    target = Path(out)
    _refuse_taken(target, overwrite)
    if opened.is_evaluated and opened.scores.checkpoint_digest != opened.checkpoint.digest:
        raise RunFolderError(
            f"{opened.path}: its scores are of {opened.scores.checkpoint}, the run has {opened.checkpoint} "
            f"now; run `wsol evaluate {opened.path}` again, so that the card tells the truth"
        )
    if not opened.is_evaluated:
        measurable = opened.data.boxed != 0  # else its data set has no test images with a box
        first = f"; `wsol evaluate {opened.path}` first" if measurable else ""
        note(f"{opened.path}: not evaluated, so the card has no figures{first}")
    name = target.resolve().name
    with replacing_folder(target, parents=True) as draft:
        folder = RunFolder(draft)
        pictures = _draw(opened, folder.picture) if picture and opened.is_evaluated else 0
        write_packed(opened, folder)
        if opened.is_evaluated:
            write_json(folder.scores, opened.scores.to_json())
        shown = folder.picture.name if pictures else None
        write_text(folder.card, render_card(make_card(opened, name, license, shown, pictures)))
        write_manifest(folder.manifest, opened.name)
    return target


def push(pack: Path | str, name: str, *, private: bool = False) -> str:
    """Put a pack on the Hugging Face Hub; returns its address for a browser.

    The repository is made if there is none. It then holds this pack and nothing else; its earlier states stay
    in its history. You must be logged in (`hf auth login`). Anyone then loads it by `wsol.load("hf://NAME")`.

    Args:
        pack: the folder of a pack.
        name: owner/name of the repository.
        private: make a new repository private.

    Raises:
        RunFolderError: no pack, a pack that is damaged, or a hub that refuses or cannot be reached.

    >>> import wsol
    >>> wsol.push("runs/demo", "owner/birds")
    Traceback (most recent call last):
    ...
    wsol.errors.RunFolderError: runs/demo: not a pack: make one with `wsol pack RUN runs/demo`
    >>> folder = wsol.pack("runs/demo", "packs/birds", picture=False)
    >>> wsol.push(folder, "owner/birds")  # doctest: +SKIP
    'https://huggingface.co/owner/birds'
    """
    folder = RunFolder(pack)
    if not folder.is_pack:
        raise RunFolderError(f"{folder.path}: not a pack: make one with `wsol pack RUN {folder.path}`")
    folder.require()
    return upload(folder.path, name, private)


def start_from_pack(pack: Run, data: Path | str | None, run_dir: Path | str | None = None) -> Path:
    """A new run folder with what a pack holds, to be measured.

    run_dir: None for `runs/<name>`, with -2, -3, ... where that is taken.
    """
    path = default_run_dir(pack.name, resume=False) if run_dir is None else Path(run_dir)
    if not is_free(path):
        raise RunFolderError(
            f"{path}: not empty; score it again with `wsol evaluate {path}`, or choose another folder (--out)"
        )
    write_unpacked(pack, RunFolder(path), data)
    return path


def _draw(run: Run, path: Path) -> int:
    try:
        return draw_pictures(run, path)
    except (DataError, RunFolderError) as error:
        note(f"the card has no picture: {error}")
        return 0


def _refuse_taken(target: Path, overwrite: bool) -> None:
    taken = target.exists() and (not target.is_dir() or any(target.iterdir()))
    if not taken or (overwrite and RunFolder(target).is_pack):
        return
    way = "only a pack is replaced; choose another folder" if overwrite else "choose another, or --overwrite"
    raise RunFolderError(f"{target}: not empty; {way}")
