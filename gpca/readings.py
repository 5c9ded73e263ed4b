"""GPCA's readings: named combinations of options, each a way to read the paper's equations.

Taken literally, the equations give almost the same mask for every channel: squared distances of class maps
are in the thousands, so the exponential term is 0; theta2 = 1 makes all A_c alike; and the division by C-1
makes small what is left. The paper calls theta1 sensitive between 1/4 and 64, which holds only for distances
of about one. So the other readings bring channels, or distances, to that scale.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn.functional import normalize as divide_by_norm

from gpca.posterior import squared_distances

ReadingName = Literal["literal", "unit", "unit-sum", "unit-gain", "unit-center", "auto"]
Reduction = Literal["mean", "sum"]
Normalize = Literal["none", "unit", "size"]
Theta = Sequence[float] | Literal["auto"]

#: theta2 of the readings that keep the constant term small; it must be positive to be learned.
SMALL = 1e-4
#: A channel with a smaller norm counts as dead: it is divided by this, so zeros stay zeros.
SMALLEST_NORM = 1e-6


class Reading(NamedTuple):
    """What a reading chooses; see `gpca.GPCA` for each option. theta None: the start of the variant."""

    normalize: Normalize = "none"
    theta: Theta | None = None
    reduction: Reduction = "mean"
    gain: bool = False
    center: bool = False


_UNIT = Reading(normalize="unit", theta=(1.0, 8.0, SMALL, 1.0))

READINGS: dict[ReadingName, Reading] = {
    # The paper's equations as printed.
    "literal": Reading(),
    # Channels of norm 1, so that squared distances lie between 0 and 4.
    "unit": _UNIT,
    # The same without the division by C-1.
    "unit-sum": _UNIT._replace(reduction="sum"),
    # The same with a learned factor on A that starts as the sum.
    "unit-gain": _UNIT._replace(gain=True),
    # The same with the mean of A removed, so that masks lie on both sides of 0.5.
    "unit-center": _UNIT._replace(gain=True, center=True),
    # Maps as they are; theta1 is measured on the first training batch.
    "auto": Reading(theta="auto"),
}


def choose_options(reading: ReadingName, **given: Any) -> Reading:
    """The options of a reading, with those of `given` on top that are not None.

    normalize True and False are former names of "size" and "none".

    Raises:
        ValueError: an unknown name; `gain` beside `reduction="sum"`.
    """
    check_choice("reading", reading, get_args(ReadingName))
    if isinstance(given["normalize"], bool):
        given["normalize"] = "size" if given["normalize"] else "none"
    chosen = READINGS[reading]._replace(**{key: value for key, value in given.items() if value is not None})
    check_choice("normalize", chosen.normalize, get_args(Normalize))
    check_choice("reduction", chosen.reduction, get_args(Reduction))
    if chosen.gain and chosen.reduction == "sum":
        raise ValueError(
            "gain is a factor of the mean that starts as the sum: reduction must be mean, not sum"
        )
    return chosen


def check_choice(argument: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(choices)}, got {value!r}")


def scale_channels(x: Tensor, normalize: Normalize) -> Tensor:
    """Channels x (N, C, D) on the scale that the kernel sees them: float64, but for "none".

    none: x. unit: x_c / max(|x_c|, 1e-6). size: x / sqrt(D).
    """
    if normalize == "unit":
        return divide_by_norm(x.double(), dim=-1, eps=SMALLEST_NORM)
    if normalize == "size":
        return x.double() / x.shape[-1] ** 0.5
    return x


def median_distance(x: Tensor) -> Tensor:
    """The median over images of the median |x_c - x_c'|^2 over pairs c != c', from channels x (N, C, D).

    Of an even number it is the lower middle one. In a process group the images of all ranks count, so that
    every rank gets the same number, whatever their number; so every rank must call this.
    """
    X = x.detach().double()
    D2 = squared_distances(X @ X.mT)
    row, column = torch.triu_indices(x.shape[1], x.shape[1], offset=1, device=x.device)
    medians = D2[:, row, column].median(dim=1).values
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        parts: list[list[float]] = [[]] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(parts, medians.tolist())  # ranks may hold unequal numbers
        medians = medians.new_tensor([value for part in parts for value in part])
    return medians.median() if len(medians) else medians.new_tensor(torch.nan)
