"""Open a trained run: its localizer and what is needed to use it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wsol.config import Config
from wsol.config_file import load_config
from wsol.data.record import DataRecord
from wsol.errors import RunFolderError
from wsol.runs.checkpoint import load_first, load_model_state, require_parts
from wsol.runs.description import describe
from wsol.runs.folder import RunFolder

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


@dataclass(frozen=True)
class LoadedRun:
    """A trained localizer, in evaluation mode, and what is needed to use it."""

    path: Path
    config: Config
    localizer: Localizer
    data: DataRecord
    checkpoint: Path
    epoch: int  # epochs that the checkpoint was trained for

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.classes


def load_run(
    path: Path | str,
    device: str = "auto",
    overrides: Sequence[str] = (),
    notice: Callable[[str], None] = lambda text: print(f"wsol: note: {text}", file=sys.stderr),
) -> LoadedRun:
    """Open a run folder: the best checkpoint where there is one, else the last; no data set is touched.

    overrides: `--set` texts on the run's config, for those who evaluate it elsewhere (`data.root=...`).
    """
    from wsol.models.localizer import build_localizer
    from wsol.runs.ranks import pick_device

    folder = RunFolder(Path(path))
    folder.require()
    config = load_config(folder.config, overrides)
    data = DataRecord.read(folder)
    store = folder.checkpoints
    paths = [p for p in (store.best, store.last, store.previous) if p.exists()]
    if not paths:
        raise RunFolderError(f"{path}: no checkpoint yet; train it first (wsol train ... --resume)")
    state, used = load_first(paths, notice)
    require_parts(state, ("model", "describes", "epoch"))
    blank = replace(config.model, weights="none")  # everything comes from the checkpoint
    localizer = build_localizer(blank, len(data.classes), data.hierarchy, image_size=config.data.image_size)
    load_model_state(localizer, state["model"], describe(config, len(data.classes)), state["describes"])
    return LoadedRun(
        path=folder.path,
        config=config,
        localizer=localizer.to(pick_device(device)).eval(),
        data=data,
        checkpoint=used,
        epoch=state["epoch"],
    )
