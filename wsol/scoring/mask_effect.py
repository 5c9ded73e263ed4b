"""Whether a channel attention acts: how its masks differ, whether they know the class, what they change.

For image n with logits z, mask v over the C classes and label y:

- spread: the deviation of v over the channels of an image, and of each channel over the images;
- AUC: the share of the other classes whose mask is below v_y (equal ones count half), averaged over the
  images. 1: the true class always has the largest mask; 0.5: the mask knows nothing of the class;
- constant control: the mask replaced by its own mean. In every head of this package a logit is the mean of an
  attended map, z_c = v_c u_c, so the control's logits are exactly mean(v) z_c / v_c. Reported are the rank
  correlation of both logits (Spearman, averaged over the images) and how often the predicted class differs.

A factor of a class map cancels where the map is normalised before it is cut, so the control has the same box
for a given class: boxes differ only where the predicted class does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from wsol.localization.predictions import Predictions
from wsol.scoring.bootstrap import intervals
from wsol.scoring.mask_distribution import rows_with_masks

EffectKind = Literal["constant", "fixed", "blind", "helpful", "harmful"]

ALIKE = 0.02  # a deviation below this share of the mean mask counts as none
UNCHANGED = 0.02  # as few changed images count as none; where logits are close, a small mask can decide
_BLOCK = 4096
_TINY = 1e-12  # keeps a mask of 0 from dividing by 0
_FOLLOWS = "the mask differs between channels and between images (std {channels:.2g} and {images:.2g})"


@dataclass(frozen=True)
class MaskEffect:
    """What the masks of all test images show. Shares are between 0 and 1.

    std_channels: of one image's mask, averaged over the images; std_images: of one channel's, averaged over
    the channels. auc: with its 95 % bootstrap interval over the images. correlation: of the logits with those
    of the constant control. changed: images whose predicted class is another under the control; gained and
    lost: those that the mask alone, or the control alone, classifies right.
    """

    num_images: int
    mean: float
    std_channels: float
    std_images: float
    least: float
    most: float
    auc: float
    auc_interval: tuple[float, float]
    correlation: float
    changed: float
    gained: float
    lost: float

    @property
    def kind(self) -> EffectKind:
        """What the attention is, in one word.

        constant: one weight for all channels, and replacing it by its mean changes nothing; fixed: the same
        weights for every image; blind: weights that do not know the class; helpful, harmful: the true class
        has a larger, or smaller, weight than the others.
        """
        alike = self.std_channels < ALIKE * self.mean
        if alike and self.changed < UNCHANGED:
            return "constant"
        if not alike and self.std_images < ALIKE * self.mean:
            return "fixed"
        low, high = self.auc_interval
        if low <= 0.5 <= high:
            return "blind"
        return "helpful" if self.auc > 0.5 else "harmful"

    @property
    def verdict(self) -> str:
        """The kind as a sentence, with the figures behind it."""
        low, high = self.auc_interval
        auc = f"AUC {self.auc:.3f} [{low:.3f}, {high:.3f}]"
        follows = _FOLLOWS.format(channels=self.std_channels, images=self.std_images)
        sentences: dict[EffectKind, str] = {
            "constant": (
                f"the mask is almost the same for every channel (std {self.std_channels:.2g}, "
                f"mean {self.mean:.3f}; {auc}): this attention acts as a constant"
            ),
            "fixed": (
                f"the mask is almost the same for every image (std {self.std_images:.2g}; between channels "
                f"{self.std_channels:.2g}; {auc}): this attention acts as fixed weights of the classes"
            ),
            "blind": (
                f"{follows}, but the true class has no larger weight than the others ({auc}, chance 0.5): "
                "this attention acts without knowing the class"
            ),
            "helpful": (
                f"{follows}, and the true class has a larger weight than most others ({auc}, chance 0.5): "
                "this attention acts, and knows something of the class"
            ),
            "harmful": (
                f"{follows}, and the true class has a smaller weight than most others ({auc}, chance 0.5): "
                "this attention acts against the true class"
            ),
        }
        return sentences[self.kind]

    @property
    def consequence(self) -> str:
        """What the constant control would change, as a sentence."""
        return (
            f"with the mask replaced by its mean, {100 * self.changed:.1f} % of the images would get another "
            f"predicted class, and so another box ({100 * self.gained:.1f} % are right only with the mask, "
            f"{100 * self.lost:.1f} % only without); rank correlation of the logits {self.correlation:.4f}"
        )


def measure_masks(predictions: Predictions) -> MaskEffect | None:
    """From the images that could be read and have finite masks; None without attention, or without images."""
    masks = predictions.masks
    if masks is None:
        return None
    rows = rows_with_masks(predictions)
    if not len(rows):
        return None
    figures: dict[str, list[NDArray[np.float64]]] = {}
    total, squares, least, most = 0.0, 0.0, np.inf, -np.inf
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        v = np.asarray(masks[part], dtype=np.float64)
        z = np.asarray(predictions.scores[part], dtype=np.float64)
        y = np.asarray(predictions.labels[part])
        control = control_logits(z, v)
        right, kept = z.argmax(axis=1) == y, control.argmax(axis=1) == y
        found = {
            "mean": v.mean(axis=1),
            "std": v.std(axis=1),
            "auc": true_class_auc(v, y),
            "correlation": rank_correlation(z, control),
            "changed": (z.argmax(axis=1) != control.argmax(axis=1)).astype(np.float64),
            "gained": (right & ~kept).astype(np.float64),
            "lost": (kept & ~right).astype(np.float64),
        }
        for name, values in found.items():
            figures.setdefault(name, []).append(values)
        total, squares = total + v.sum(axis=0), squares + (v * v).sum(axis=0)
        least, most = min(least, float(v.min())), max(most, float(v.max()))
    joined = {name: np.concatenate(parts) for name, parts in figures.items()}
    num = len(rows)
    variance = np.maximum(squares / num - (total / num) ** 2, 0)
    low, high = intervals(joined["auc"][:, None])[:, 0].tolist()
    return MaskEffect(
        num_images=num,
        mean=float(joined["mean"].mean()),
        std_channels=float(joined["std"].mean()),
        std_images=float(np.sqrt(variance).mean()),
        least=least,
        most=most,
        auc=float(joined["auc"].mean()),
        auc_interval=(low, high),
        correlation=float(joined["correlation"].mean()),
        changed=float(joined["changed"].mean()),
        gained=float(joined["gained"].mean()),
        lost=float(joined["lost"].mean()),
    )


def true_class_auc(masks: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """(N,) the share of the other classes whose mask is below the true class's, equal ones as a half.

    >>> true_class_auc(np.array([[0.2, 0.9, 0.2], [0.5, 0.5, 0.5]]), np.array([1, 0]))
    array([1. , 0.5])
    """
    true = np.take_along_axis(masks, labels[:, None], axis=1)
    below, equal = (masks < true).sum(axis=1), (masks == true).sum(axis=1) - 1
    shares: NDArray[np.float64] = (below + equal / 2) / (masks.shape[1] - 1)
    return shares


def control_logits(logits: NDArray[np.floating], masks: NDArray[np.floating]) -> NDArray[np.float64]:
    """(N, C) the logits with each image's mask replaced by its mean: mean(v) z_c / v_c."""
    v = masks.astype(np.float64)
    controlled: NDArray[np.float64] = v.mean(axis=1, keepdims=True) * logits / np.maximum(v, _TINY)
    return controlled


def rank_correlation(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
    """(N,) Spearman's correlation of the rows of a and b (N, C); 1 where all values of a row are equal."""
    x, y = (rankdata(values, axis=1) for values in (a, b))
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    norm = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    result: NDArray[np.float64] = np.where(norm > 0, (x * y).sum(axis=1) / np.maximum(norm, _TINY), 1.0)
    return result
