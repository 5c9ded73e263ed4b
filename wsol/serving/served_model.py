"""A model as the page offers it: its name, its methods, its classes and the thresholds of its slider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.class_names import display_names
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.localization.finder import Finder
from wsol.registry import MAP_METHODS

STEPS = 100  # of the slider, from 0 to 1


@dataclass(frozen=True)
class ServedModel:
    """finder: what finds objects. A plain classifier may be asked with every map method."""

    name: str
    finder: Finder
    _by_method: dict[str, Finder] = field(default_factory=dict, repr=False)

    @property
    def method(self) -> str:
        """The map method that comes first; '' where there is none to choose."""
        return self.finder.method if isinstance(self.finder, ClassifierFinder) else ""

    @property
    def methods(self) -> list[str]:
        return list(MAP_METHODS.entries()) if self.method else [""]

    def by(self, method: str) -> Finder:
        """The finder with this method, made at its first use; ConfigError where it does not fit the network.

        To be called in the thread that asks models, since it asks them.
        """
        if not isinstance(self.finder, ClassifierFinder) or method == self.method:
            return self.finder
        if method not in self._by_method:
            self._by_method[method] = self.finder.with_method(method)
        return self._by_method[method]

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The steps of the slider, the model's own threshold among them; only this where it cuts itself."""
        own = self.finder.threshold
        if self.finder.localizer.cut is not None:
            return np.array([own])
        return np.unique([*(step / STEPS for step in range(STEPS)), own])

    def to_page(self) -> dict[str, Any]:
        """What the page needs to know."""
        thresholds = self.thresholds.tolist()
        return {
            "name": self.name,
            "methods": self.methods,
            "method": self.method,
            "classes": display_names(self.finder.classes),
            "protocol": self.finder.protocol,
            "thresholds": thresholds,
            "start": thresholds.index(self.finder.threshold),
        }
