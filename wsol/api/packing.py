"""What of a run makes its localizer, written into another folder: for a pack, and from a pack for a new run.

A refined run has two networks. Its source, which gives the classes, goes into the folder `source/` in the
same way; a refined source has a `source/` of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsol.config import Config, Data
from wsol.config_file import dump_config
from wsol.errors import ConfigError
from wsol.models.classifier.opening import is_public
from wsol.plugins import loaded
from wsol.run import Run
from wsol.runs.files import make_folder, write_json, write_text
from wsol.runs.folder import RunFolder
from wsol.runs.manifest import write_manifest
from wsol.runs.packed_weights import write_weights

Plugins = list[dict[str, Any]]


def refuse_unpackable(run: Run) -> None:
    """Raise where a pack cannot hold what the localizer needs."""
    if run.config.classifier is not None or run.config.network is not None:
        raise ConfigError(f"{run.path}: a run of a plain classifier; only trained localizers are packed")
    source = run.source
    while source is not None:
        classifier = source.config.classifier
        if classifier is not None and not is_public(classifier.name):
            raise ConfigError(
                f"{run.path}: its classes come from the classifier {classifier.name}, Python code that a "
                "pack does not hold; refine a run of `wsol train`, or of a torchvision or timm classifier"
            )
        source = source.source


def write_packed(run: Run, folder: RunFolder) -> None:
    """The localizer of a run for a pack, without paths of this machine. The manifest is not written yet."""

    def plugins_of(one: Run) -> Plugins:
        if not one.folder.plugins.is_file():
            return []
        recorded = one.folder.read_json(one.folder.plugins)["plugins"]
        return [{**plugin, "file": Path(plugin["file"]).name} for plugin in recorded]

    _write(run, folder, _without_paths, plugins_of, is_pack=True)


def write_unpacked(pack: Run, folder: RunFolder, data: Path | str | None) -> None:
    """The localizer of a pack for a new run. data: the data set; None for the one that the pack names."""

    def with_data(config: Config) -> Config:
        if data is None:
            return config
        root = Path(data).resolve()
        return replace(config, data=_at(config.data, root, root))

    # The plugins are those that this user chose to import, not those that a stranger's file names.
    _write(pack, folder, with_data, lambda _: loaded(), is_pack=False)


def _write(
    run: Run,
    folder: RunFolder,
    changed: Callable[[Config], Config],
    plugins_of: Callable[[Run], Plugins],
    is_pack: bool,
) -> None:
    write_text(folder.config, dump_config(changed(run.config)), parents=True)
    write_json(folder.data, replace(run.data, skipped=()).to_json())
    plugins = plugins_of(run)
    if plugins:
        write_json(folder.plugins, {"plugins": plugins})
    write_weights(folder.packed_weights, *run.packed_parts())
    if run.config.refine is None:
        return
    record = run.folder.read_json(run.folder.source_record)
    name = Path(str(record.get("path", ""))).name
    write_json(folder.source_record, {**record, "path": name})
    if run.source is not None:
        inner = RunFolder(folder.source)
        make_folder(inner.path)
        _write(run.source, inner, changed, plugins_of, is_pack)
        if is_pack:
            write_manifest(inner.manifest, name)


def _at(data: Data, root: Path, tables: Path) -> Data:
    """The data set at another root. tables: where the files are that its options name, as `annotations`."""
    moved = {key: tables / value.name for key, value in data.options.items() if isinstance(value, Path)}
    return replace(data, root=root, options={**data.options, **moved})


def _without_paths(config: Config) -> Config:
    """The config without what is of this machine alone. The pack records plugins in a file of their own."""
    refine, classifier = config.refine, config.classifier
    return replace(
        config,
        plugins=(),
        data=_at(config.data, Path(config.data.root.name), Path()),
        model=replace(config.model, weights=Path(config.model.weights).name),
        refine=refine and replace(refine, source=refine.source and Path(refine.source.name)),
        classifier=classifier and replace(classifier, weights=Path(classifier.weights).name),
    )
