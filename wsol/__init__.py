"""Weakly supervised object localization: train from image labels, measure, see the boxes.

Data flows one way through the rooms of this package, and each room knows only the ones before it::

    data -> models -> localize -> scoring -> training
                                          -> views
    images  maps      boxes       numbers    runs and pictures

`wsol.load(RUN)` opens a trained localizer; see `wsol.api`.
"""

from typing import TYPE_CHECKING, Any

from wsol.version import __version__

if TYPE_CHECKING:
    from wsol.api import load

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    """`load` at its first use: torch takes seconds to import, and `wsol --help` should not wait for it."""
    if name == "load":
        from wsol.api import load

        return load
    raise AttributeError(f"module 'wsol' has no attribute {name!r}")
