"""`wsol.pack` and `wsol.push`: hand a trained localizer on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wsol.config import Config
from wsol.config_file import dump_config
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.notices import note
from wsol.plugins import loaded
from wsol.run import Run
from wsol.runs.files import replacing_folder, write_json, write_text
from wsol.runs.folder import RunFolder, default_run_dir, is_free
from wsol.runs.hub import upload
from wsol.runs.manifest import write_manifest
from wsol.runs.packed_weights import write_weights
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
    `wsol.evaluate(out, data=...)`. Paths of this machine are left out.

    Args:
        run: a run of a trained localizer, or its folder.
        out: the new folder.
        picture: show test images in the card. Say False where you may not publish them.
        license: an identifier for the card, as the hub writes them: mit, cc-by-nc-4.0, ...
        data: where the data set is now, if it was moved; for the picture.
        overwrite: replace a pack that lies there.

    Raises:
        RunFolderError: the folder is taken, or the scores are of another checkpoint than the run's.

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
    config, target = opened.config, Path(out)
    if config.classifier is not None or config.network is not None:
        raise ConfigError(f"{opened.path}: a run of a plain classifier; only trained localizers are packed")
    if config.refine is not None:
        raise ConfigError(
            f"{opened.path}: a refined run has two models, and a pack holds one: pack the run that it refines"
        )
    _refuse_taken(target, overwrite)
    model, about = opened.packed_parts()
    if opened.is_evaluated and opened.scores.checkpoint_digest != about["digest"]:
        raise RunFolderError(
            f"{opened.path}: its scores are of {opened.scores.checkpoint}, the run has {opened.checkpoint} "
            f"now; run `wsol evaluate {opened.path}` again, so that the card tells the truth"
        )
    if not opened.is_evaluated:
        note(f"{opened.path}: not evaluated, so the card has no figures; `wsol evaluate {opened.path}` first")
    name = target.resolve().name
    with replacing_folder(target, parents=True) as draft:
        folder = RunFolder(draft)
        pictures = _draw(opened, folder.picture) if picture and opened.is_evaluated else 0
        write_text(folder.config, dump_config(_without_paths(config)))
        write_json(folder.data, replace(opened.data, skipped=()).to_json())
        if opened.is_evaluated:
            write_json(folder.scores, opened.scores.to_json())
        if opened.folder.plugins.is_file():
            recorded = opened.folder.read_json(opened.folder.plugins)["plugins"]
            write_json(folder.plugins, {"plugins": [{**p, "file": Path(p["file"]).name} for p in recorded]})
        write_weights(folder.packed_weights, model, about)
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
    config = pack.config
    if data is not None:
        config = replace(config, data=replace(config.data, root=Path(data).resolve()))
    folder = RunFolder(path)
    write_text(folder.config, dump_config(config), parents=True)
    write_json(folder.data, pack.data.to_json())
    if loaded():  # those that this user chose to import
        write_json(folder.plugins, {"plugins": loaded()})
    write_weights(folder.packed_weights, *pack.packed_parts())
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


def _without_paths(config: Config) -> Config:
    """The config without what is of this machine alone. The pack records plugins in a file of their own."""
    weights = config.model.weights
    return replace(
        config,
        plugins=(),
        data=replace(config.data, root=Path(config.data.root.name)),
        model=replace(config.model, weights=Path(weights).name if weights else weights),
    )
