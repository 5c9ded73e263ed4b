"""A plain classifier that finds objects in photos."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wsol.localization.finder import Finder
from wsol.models.classifier.building import BuiltClassifier


@dataclass(frozen=True)
class ClassifierFinder(Finder):
    """A `Finder` made from a classifier. built: the classifier and how it was made."""

    built: BuiltClassifier

    @property
    def described(self) -> str:
        return f"{self.built.config.name}, {self.built.origin}"

    @property
    def layer(self) -> str:
        """The layer that the maps come from."""
        return self.built.localizer.layer

    @property
    def method(self) -> str:
        """The name of the method that makes the maps."""
        return self.built.config.method

    def with_method(self, method: str) -> ClassifierFinder:
        """The same with maps by another method; ConfigError where that does not fit the classifier."""
        built = self.built.with_method(method)
        return replace(self, localizer=built.localizer, built=built)
