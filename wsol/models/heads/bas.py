"""BAS's head: a generator of foreground maps. It learns to leave nothing of the class outside of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from wsol.config import MapKind
from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Outline
from wsol.models.detached import call_detached
from wsol.models.heads.class_maps import ClassMaps, convolution, select_maps
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import Targets, cross_entropy, one_label
from wsol.records import LocalizerOutput
from wsol.registry import HEADS

ALPHA, BETA = 0.5, 1.2  # where the authors give none for a backbone
EPSILON = 1e-8


@HEADS.register(
    "bas", "background activation suppression: a generator of whole-object maps (Wu et al., 2022)"
)
class BAS(Head):
    """Learn a map M that covers the object: outside of M the network should no longer see the class.

    With X the output of the stage `generator`, tail the rest of the backbone and head the class maps with
    their attention:

        F = head(tail(X))                  (N, classes, h, w)       z = P(F), the logits
        M = sigmoid(conv3x3(X))_y          (N, H, W), y the true class
        z2 = P(F * pool(M))                                         pool: average pooling to h x w
        S = relu(z_y),  S_bg = relu(P(head'(tail'(sg(X) * (1 - M))))_y)
        P: the mean over (h, w)

        loss = CE(z, y) + t (alpha CE(z2, y) + mean[ min(S_bg / (sg(S) + 1e-8), 1) + beta mean(M) ])

    sg: no gradient flows. head' and tail': the present weights, held still, without drop blocks or other
    taps. Their batch norm uses the statistics of the erased batch and does not change the running ones. So
    the last two terms teach the generator and the backbone below X, and nothing else.

    t rises from 0 at epoch `start` to 1 at epoch `start + ramp`: before the classifier has learned anything
    the ratio is noise.

    Two options are for networks that learn from scratch, and are not of the paper:

    `sharpness` r > 0 takes P(F) = ln(mean over (h, w) of exp(r F)) / r, between the mean (r near 0) and the
    maximum. By the mean, a mark that fills a hundredth of the image adds only a hundredth of its value to the
    score. A network then takes many epochs to find it, and until then tells classes by their surroundings.
    With this P, S_bg also sees every small part of the object that is left outside of M.

    `steady` takes S_bg / sg(max(S, S_bg)) for the ratio. It has the same value as min(S_bg / S, 1), but also
    a gradient where S_bg >= S. There the clamped ratio has none, and the area term alone shrinks M.

    At test the map of a class is its channel of sigmoid(conv3x3(X)), (N, classes, H, W), in `extras`. By
    default those of all classes are averaged, or of the `topk` best ones (`maps: topk`).

    Wu et al., "Background Activation Suppression for Weakly Supervised Object Localization", CVPR 2022, and
    its extension in IJCV, whose S = relu(z_y) this is.

    Departs from the paper: min(., 1), where the CVPR code sets the ratio to 0 if S_bg >= S. There M = 0 is a
    state that training does not leave. `as_published` brings that rule and the code's ReLU after the head:
    F = relu(head(tail(X))). Our reading: attention acts on F in both branches, and not on M.

    Args:
        generator: the stage of X; by default the one that the backbone names `bas`. The authors have maps of
            stride 8 there: set the backbone's `stride: bas` too.
        alpha, beta: see above; None for the authors' values on this backbone, or else 0.5 and 1.2.
        start, ramp: in epochs, see above. The authors start with all terms: 0 and 0.
        channels: width of the two 3x3 convolutions of the head; 0 for a linear one.
        as_published, steady, sharpness: see above.

    Raises:
        ValueError: no such stage, or a negative number.
    """

    needs_labels: ClassVar[bool] = True
    usual_maps: ClassVar[MapKind] = "topk"

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        generator: str = "bas",
        alpha: float | None = None,
        beta: float | None = None,
        start: float = 0.0,
        ramp: float = 0.0,
        channels: int = 1024,
        as_published: bool = False,
        steady: bool = False,
        sharpness: float = 0.0,
    ) -> None:
        super().__init__()
        try:
            (read,) = outline.place_exactly(1, generator)
        except ValueError as error:
            raise ValueError(f"generator: {error}") from None
        published = outline.published.get("bas", {})
        self.alpha = published.get("alpha", ALPHA) if alpha is None else alpha
        self.beta = published.get("beta", BETA) if beta is None else beta
        self.start, self.ramp, self.sharpness = start, ramp, sharpness
        for name in ("alpha", "beta", "start", "ramp", "sharpness"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if as_published and steady:
            raise ValueError("as_published and steady are two rules for the same ratio: choose one")
        self.as_published, self.steady = as_published, steady
        self.reads = (outline.last.name, read.name)
        self.class_maps = ClassMaps(outline.last.channels, channels, classes)
        self.attention = make_attention(classes)
        self.generator = convolution(read.channels, classes, 3)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        end, stage = self.reads
        x = features[stage]
        generated = self.generator(x).sigmoid()
        extras = {"generated": generated}
        if labels is not None:
            foreground = select_maps(generated, labels)[:, None]
            rest = tail(stage, x.detach() * (1 - foreground), taps=False, detached=True)
            # Before the other branch, so that the attention's last mask is that of the whole image.
            erased = self._last(call_detached(self.attention, call_detached(self.class_maps, rest)))
            extras["background"] = select_maps(self.pool(erased), labels)
            extras["foreground"] = foreground
        maps = self._last(self.attention(self.class_maps(features[end])))
        return LocalizerOutput(self.pool(maps), maps, extras)

    def pool(self, maps: Tensor) -> Tensor:
        """P, from maps to scores: (N, C, h, w) -> (N, C)."""
        if self.sharpness == 0:
            return maps.mean(dim=(2, 3))
        # In half precision the sum over many cells would lose the small ones.
        flat = self.sharpness * maps.flatten(2).to(torch.promote_types(maps.dtype, torch.float32))
        return (flat.logsumexp(dim=2) - math.log(flat.shape[2])) / self.sharpness

    def _last(self, maps: Tensor) -> Tensor:
        return maps.relu() if self.as_published else maps

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        labels = one_label(targets)
        foreground = output.extras["foreground"]
        weight = self.weight()
        height, width = output.maps.shape[2:]
        inside = F.adaptive_avg_pool2d(foreground, (height, width))
        seen = self.pool(output.maps * inside)
        ratio = self.ratio(output.extras["background"], select_maps(output.logits, labels))
        return {
            "classification": cross_entropy(output.logits, labels),
            "foreground": weight * self.alpha * cross_entropy(seen, labels),
            "background": weight * ratio.mean(),
            "area": weight * self.beta * foreground.mean(),
        }

    def ratio(self, background: Tensor, whole: Tensor) -> Tensor:
        """How much of the true class's score is left outside of the foreground: (N,), (N,) -> (N,)."""
        # In half precision the epsilon would be zero.
        precise = torch.promote_types(whole.dtype, torch.float32)
        background, whole = background.to(precise).relu(), whole.detach().to(precise).relu()
        if self.steady:  # at most 1, without a clamp that would stop the gradient
            return background / (torch.maximum(whole, background.detach()) + EPSILON)
        ratio = background / (whole + EPSILON)
        return ratio * (background < whole) if self.as_published else ratio.clamp(max=1)

    def weight(self) -> float:
        """t, what the generator's terms count at this point of the training."""
        if self.ramp == 0:
            return float(self.epoch >= self.start)
        return min(max((self.epoch - self.start) / self.ramp, 0.0), 1.0)

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return select_maps(output.extras["generated"], labels)

    def extra_repr(self) -> str:
        return f"{self.reads[1]}, alpha={self.alpha}, beta={self.beta}, start={self.start}, ramp={self.ramp}"
