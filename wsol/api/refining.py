"""`wsol.refine`: a light network without classes that learns from the maps of another run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsol.api.training import train
from wsol.config import Config
from wsol.config_file import config_from_dict, config_to_dict, load_config
from wsol.run import Run
from wsol.shipped_configs import find_config
from wsol.training.source import open_source

DEFAULT = "refine"  # the shipped config that trains where none is given


def refine(
    source: Run | Path | str,
    run_dir: Path | str | None = None,
    *,
    config: Config | Mapping[str, Any] | Path | str = DEFAULT,
    set: Mapping[str, Any] | None = None,
    resume: bool = False,
    progress: bool = False,
) -> Run:
    """Train a light foreground network on the maps of a run; the result is a run with the same classes.

    The maps of the source on the training images become labels of pixels, which the head `foreground` learns
    (`wsol.training.guides`); no box takes part. Logits and classes stay those of the source, whose model is
    copied into the new run. Where the source knows no classes (`ddt`, `wsol discover`), neither does the
    result.

    Args:
        source: a run of a trained localizer, of `ddt` or of a plain classifier, or the folder that
            `wsol discover` wrote.
        run_dir: the new run folder; None for `runs/<name of the source>-refined`, with -2, ... if it exists.
        config: a config whose head is `foreground`; data set, split and image size are the source's unless it
            sets them.
        set: values that change, by their dotted key: `{"train.epochs": 5}`.
        resume: continue the run in the folder; begin one if it is empty.
        progress: print a line for each epoch, as the command does.

    Raises as `wsol.train` does.

    >>> import wsol
    >>> tiny = {"model": {"backbone": "tiny", "weights": "none", "head": "foreground"}}
    >>> fast = {"train.epochs": 1, "train.batch_size": 4, "train.device": "cpu"}
    >>> run = wsol.refine("runs/demo", "runs/refined", config=tiny, set=fast)
    >>> run.config.refine.method, run.classes == wsol.Run("runs/demo").classes
    ('CAM-GPCA', True)
    """
    path = source.path if isinstance(source, Run) else Path(source)
    checked = refining_config(path, config, set)
    return train(checked, run_dir, resume=resume, name=f"{path.resolve().name}-refined", progress=progress)


def refining_config(
    source: Path,
    config: Config | Mapping[str, Any] | Path | str = DEFAULT,
    set: Mapping[str, Any] | None = None,
    overrides: tuple[str, ...] = (),
) -> Config:
    """The config that trains on the maps of a source. overrides: texts `a.b=c`, as `--set` takes them."""
    found = open_source(source)
    base = {
        "data": found.data(),
        "train": {"batch_size": found.batch_size},
        "refine": {"source": str(source), "method": found.method},
    }
    if isinstance(config, (str, Path)):
        return load_config(find_config(config), overrides, set, base=base)
    return config_from_dict(config_to_dict(config) if isinstance(config, Config) else config, set, base)
