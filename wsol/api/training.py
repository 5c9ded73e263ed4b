"""`wsol.train` and `wsol.classify`: from a config to a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsol.config import Config
from wsol.errors import ConfigError, TrainingStopped
from wsol.run import Run


def train(
    config: Config | Mapping[str, Any] | Path | str,
    run_dir: Path | str | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    resume: bool = False,
    name: str | None = None,
    progress: bool = False,
) -> Run:
    """Train the localizer that a config describes; returns the run.

    Everything goes into the run folder: the resolved config, versions, one row of figures per epoch, curves,
    and checkpoints that survive a kill. Under torchrun every process calls this.

    Args:
        config: a `Config`, a YAML file, or nested values as a file holds them.
        run_dir: the run folder; None for `runs/<name of the config>`, with -2, -3, ... if that exists.
        set: values that change, by their dotted key: `{"train.epochs": 5}`.
        resume: continue the run in the folder; begin one if it is empty.
        name: the name of the run where `run_dir` is None; by default that of the config file.
        progress: print a line for each epoch, as the command does.

    Raises:
        ConfigError, DataError, CheckpointError, RunFolderError: before the first step, with what to do.
        TrainingDiverged: the loss is no longer a number; the last checkpoint is from before that.
        TrainingStopped: a signal came; the training was saved and `resume` continues it.

    >>> import wsol
    >>> birds = wsol.paint_birds("few_birds", species=2, train=4, test=2, size=64)
    >>> settings = {
    ...     "data": {"root": birds, "image_size": 64, "resize": 72, "workers": 0},
    ...     "model": {"backbone": "tiny", "weights": "none", "head": {"name": "cam", "channels": 8}},
    ...     "train": {"epochs": 1, "batch_size": 4, "device": "cpu"},
    ... }
    >>> run = wsol.train(settings, "runs/few", set={"train.lr": 0.02})
    >>> len(run.history), run.config.train.lr
    (1, 0.02)
    """
    checked = Config.read(config, set=set)
    if checked.classifier is not None:
        raise ConfigError("classifier: nothing to train; measure it with `wsol evaluate --classifier`")
    if checked.network is not None:
        raise ConfigError("network: a plain classifier, which `wsol classify` trains")
    head = checked.model.head
    if head.guided and (checked.refine is None or checked.refine.source is None):
        raise ConfigError(
            f"model.head: {head.name} learns from the maps of another run: name it with `wsol refine RUN`"
        )
    return _train(checked, run_dir, resume, name or _name(config), progress)


def classify(
    config: Config | Mapping[str, Any] | Path | str = "classify",
    run_dir: Path | str | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    resume: bool = False,
    name: str | None = None,
    progress: bool = False,
) -> Run:
    """Train the plain classifier that the section `network` of a config describes; returns the run.

    The run folder, `resume`, several processes and all arguments are those of `wsol.train`. The classifier
    makes no maps: `wsol.evaluate` measures its top-1 and top-5 error, `wsol.compare` puts runs side by side.

    Args:
        config: as for `wsol.train`; by default the config `classify`, which paints birds and classifies them.

    >>> import wsol
    >>> birds = wsol.paint_birds("small_birds", species=2, train=4, test=2, size=32)
    >>> settings = {
    ...     "data": {"root": birds, "image_size": 32, "resize": 32, "pad": 4, "workers": 0},
    ...     "network": {"name": "resnet_thin", "depth": 8, "attention": "gpca"},
    ...     "train": {"epochs": 1, "batch_size": 4, "device": "cpu"},
    ... }
    >>> run = wsol.classify(settings, "runs/classes")
    >>> 0 <= wsol.evaluate(run, device="cpu")["classes"]["top1_cls"] <= 100
    True
    """
    checked = Config.read(config, set=set)
    if checked.network is None:
        raise ConfigError(
            "network: this config describes no plain classifier; a config with a model is trained by "
            "`wsol train`"
        )
    return _train(checked, run_dir, resume, name or _name(config), progress)


def _name(config: Config | Mapping[str, Any] | Path | str) -> str:
    """What a run is called by default."""
    return Path(config).stem if isinstance(config, (str, Path)) else "run"


def _train(checked: Config, run_dir: Path | str | None, resume: bool, name: str, progress: bool) -> Run:
    from wsol.data.loader_faults import loader_faults_named
    from wsol.runs.folder import default_run_dir
    from wsol.runs.ranks import Ranks
    from wsol.training.signals import StopSignal
    from wsol.training.trainer import train as go
    from wsol.views.curves import draw_curves

    ranks = Ranks.join(checked.train.device)
    try:
        chosen = ranks.on_main(lambda: Path(run_dir) if run_dir else default_run_dir(name, resume))
        with StopSignal() as stop, loader_faults_named():
            code = go(checked, chosen, resume, ranks, stop, progress)
        run = Run(chosen)
        if run.history:
            ranks.on_main(lambda: draw_curves(run.history, run.folder.curves, title=run.name))
    finally:
        ranks.leave()
    if code:
        raise TrainingStopped(f"{chosen}: stopped by a signal; --resume continues there", code)
    return run
