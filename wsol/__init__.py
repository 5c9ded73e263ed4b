"""Weakly supervised object localization: train from image labels, measure, see the boxes.

Data flows one way through the rooms of this package. A room imports only the rooms before it::

    data -> models -> localization -> scoring -> run -> training | views -> serving -> api -> commands

The public functions do what the commands do::

    import wsol
    birds = wsol.paint_birds("birds")
    run = wsol.train("configs/demo.yaml", "runs/demo", set={"data.root": birds})
    wsol.evaluate(run, "all")
    wsol.load(run)("bird.jpg").overlay()
"""

import importlib
from typing import TYPE_CHECKING, Any

from wsol.version import __version__

if TYPE_CHECKING:
    from wsol.api.classifying import from_classifier
    from wsol.api.comparing import analyze, compare
    from wsol.api.costing import attention_costs
    from wsol.api.data import open_dataset, paint_birds
    from wsol.api.discovering import discover
    from wsol.api.evaluating import evaluate
    from wsol.api.localizing import export, load, localize
    from wsol.api.modelling import build_localizer
    from wsol.api.picturing import report, visualize
    from wsol.api.refining import refine
    from wsol.api.scoring import score
    from wsol.api.serving import serve
    from wsol.api.sharing import pack, push
    from wsol.api.starting import init_config
    from wsol.api.training import classify, train
    from wsol.config import Config
    from wsol.run import Run

# Where each public name lives. It is imported at its first use: torch takes seconds, and `import wsol` should
# not wait for it.
_HOMES = {
    "Config": "wsol.config",
    "Run": "wsol.run",
    "analyze": "wsol.api.comparing",
    "attention_costs": "wsol.api.costing",
    "build_localizer": "wsol.api.modelling",
    "classify": "wsol.api.training",
    "compare": "wsol.api.comparing",
    "discover": "wsol.api.discovering",
    "evaluate": "wsol.api.evaluating",
    "export": "wsol.api.localizing",
    "from_classifier": "wsol.api.classifying",
    "init_config": "wsol.api.starting",
    "load": "wsol.api.localizing",
    "localize": "wsol.api.localizing",
    "open_dataset": "wsol.api.data",
    "pack": "wsol.api.sharing",
    "paint_birds": "wsol.api.data",
    "push": "wsol.api.sharing",
    "refine": "wsol.api.refining",
    "report": "wsol.api.picturing",
    "score": "wsol.api.scoring",
    "serve": "wsol.api.serving",
    "train": "wsol.api.training",
    "visualize": "wsol.api.picturing",
}

__all__ = [
    "Config",
    "Run",
    "__version__",
    "analyze",
    "attention_costs",
    "build_localizer",
    "classify",
    "compare",
    "discover",
    "evaluate",
    "export",
    "from_classifier",
    "init_config",
    "load",
    "localize",
    "open_dataset",
    "pack",
    "paint_birds",
    "push",
    "refine",
    "report",
    "score",
    "serve",
    "train",
    "visualize",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'wsol' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
