"""A plain classifier with a map method: it does all that a trained localizer does at test, in its place."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from wsol.errors import ConfigError
from wsol.models.classifier.layers import find_layer
from wsol.models.classifier.methods.method import MapMethod
from wsol.models.classifier.network import BorrowedClassifier, Seen, require_full_precision
from wsol.models.weights import Normalisation
from wsol.records import LocalizerOutput


class ClassifierLocalizer:
    """Images in, scores and the maps of any class out, from a classifier that was never trained for that.

    It is no `nn.Module`: the model is the user's, and stays in its mode, on its device and as it was.

    Shapes: images (N, 3, S, S), uint8 or float in [0, 1], RGB -> logits (N, classes); `maps_for` gives the
    maps (N, K, h, w) of the classes asked for, and only these are computed.

    Args:
        model: from normalised images to scores (N, classes).
        method: how maps are made.
        layer: whose features they are made of: a dotted name, or `auto`.
        normalisation: what the model expects of its input.
        image_size: the side S of the images.

    Raises:
        ConfigError: no such layer, no maps in it, half precision, or a method that does not fit the model.
    """

    def __init__(
        self, model: nn.Module, method: MapMethod, layer: str, normalisation: Normalisation, image_size: int
    ) -> None:
        require_full_precision(model)
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.zeros(1))
        self.mean = torch.tensor(normalisation.mean).reshape(3, 1, 1).to(like)
        self.std = torch.tensor(normalisation.std).reshape(3, 1, 1).to(like)
        self.method = method
        with torch.inference_mode(False):
            ramp = torch.linspace(-1, 1, 3 * image_size**2).reshape(1, 3, image_size, image_size).to(like)
            self.network = BorrowedClassifier(model, *find_layer(model, layer, ramp))
            method.check(self.network, ramp)
            self.num_classes = self.network.see(ramp, gradients=False).scores.shape[1]

    @property
    def layer(self) -> str:
        """The layer that the maps come from."""
        return self.network.layer

    def normalise(self, images: Tensor) -> Tensor:
        x = images.to(self.mean)
        if images.dtype == torch.uint8:
            x = x / 255
        return (x - self.mean) / self.std

    def __call__(self, images: Tensor) -> LocalizerOutput:
        # Photos are looked at in inference mode, whose tensors know no gradients.
        with torch.inference_mode(False):
            x = self.normalise(images.clone() if images.is_inference() else images)
            with self.method.watch() as watched:
                seen = replace(self.network.see(x, self.method.needs_gradient), watched=watched)
        logits = seen.scores.detach()
        none = logits.new_zeros(len(logits), 0, *seen.features.shape[2:])  # maps are made on demand
        return LocalizerOutput(logits, none, {"seen": seen})

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """The maps of given classes: labels (N,) -> (N, h, w), labels (N, K) -> (N, K, h, w)."""
        seen: Seen = output.extras["seen"]
        with torch.inference_mode(False):
            asked = labels.reshape(len(labels), -1).clone()
            maps = self.method.maps(seen, asked)
        return maps.detach().reshape(*labels.shape, *maps.shape[2:])

    #: A classifier cuts no map itself, and knows its own classes.
    cut = None
    knows_classes = True

    def masks(self) -> list[Tensor]:
        """A plain classifier has no attention over classes."""
        return []

    def eval(self) -> ClassifierLocalizer:
        """Itself: it only ever looks, and the model's own mode is the user's."""
        return self


def require_classes(classes: tuple[str, ...], localizer: ClassifierLocalizer) -> tuple[str, ...]:
    """The names of the classes: those given, or `class 0`, `class 1`, ...; a wrong number raises."""
    names = classes or tuple(f"class {i}" for i in range(localizer.num_classes))
    if len(names) != localizer.num_classes:
        raise ConfigError(f"classes: {len(names)} names for a classifier with {localizer.num_classes} scores")
    return names
