"""Weakly supervised object localization: train from image labels, measure, see the boxes.

Data flows one way through the rooms of this package, and each room knows only the ones before it::

    data -> models -> localize -> scoring -> training
                                          -> views
    images  maps      boxes       numbers    runs and pictures
"""

from wsol.version import __version__

__all__ = ["__version__"]
