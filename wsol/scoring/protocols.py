"""The named protocols: how a map becomes a box and a box becomes a hit, as data.

The field's numbers come from evaluations that disagree in the test image, the order of resizing and
normalising, the threshold, the box, the box of an empty foreground and the rule of a hit. A `Protocol` states
all of it, no code asks for a protocol's name, and every number that is printed carries the name.

The paper leaves crop, threshold and box open: `gpca` is our choice. What the other sources leave open is our
reading too: a threshold is strict unless a source says otherwise; a fixed threshold where a source only
sweeps is 0.2; where a source has a fixed one, thresholds are searched on a grid of 0.01; a component is
8-connected; truth boxes are floats in the frame of the map, clipped to it, except in wsoleval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wsol.errors import ConfigError
from wsol.localization.maps import NORMALIZATIONS, Recipe
from wsol.registry import PROTOCOLS, suggest
from wsol.scoring.iou import Convention

BoxRule = Literal["largest component", "largest contour", "all contours", "all foreground"]
View = Literal["resize", "crop"]
VIEWS: tuple[View, ...] = ("resize", "crop")

BILINEAR = Recipe("bilinear", "minmax", "resize", "input")
BICUBIC = Recipe("bicubic", "minmax", "resize", "input")

IOU_LEVELS = (0.3, 0.5, 0.7)
HIT = 0.5


@dataclass(frozen=True)
class Protocol:
    """One way of the field to score a map.

    view: the test image, ``resize`` to the network's side, or ``crop``: to a larger side, then the centre.
    recipe: how the raw map becomes a score map.
    quantized: whether levels are int(t max) of the map in 8 bits.
    strict: whether foreground is `> t` or `>= t`.
    share_of_max: whether t is a share of the map's maximum, which shows on maps that are not normalised.
    fixed: the threshold that needs no boxes to choose it. step, low, high: the grid that is searched.
    headline: which threshold the protocol's own figure uses, ``fixed`` or ``oracle``.
    box: which box stands for the foreground. ``all contours`` counts the best of them.
    holes: whether the contours of holes are among all contours.
    empty: the box where there is no foreground, None for the whole frame.
    flat_is_empty: whether a constant map has no foreground, also where it is scored as it is.
    integer_truth: whether truth boxes are truncated to whole pixels before and after scaling.
    strict_top, strict_known: whether a hit is IoU > 0.5 or >= 0.5, for top-k and for GT-known localization.
    """

    name: str
    summary: str
    view: View = "resize"
    recipe: Recipe = BILINEAR
    quantized: bool = False
    strict: bool = True
    share_of_max: bool = False
    fixed: float = 0.2
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    headline: Literal["fixed", "oracle"] = "fixed"
    box: BoxRule = "largest contour"
    holes: bool = False
    empty: tuple[int, int, int, int] | None = None
    flat_is_empty: bool = True
    integer_truth: bool = False
    iou: Convention = "pixel"
    strict_top: bool = False
    strict_known: bool = False

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """The grid that is searched for the chosen and the oracle threshold, ascending."""
        return np.arange(self.low, self.high, self.step)

    @property
    def single_box(self) -> BoxRule:
        """The rule of the figures that want one box: MaxBoxAcc, the error kinds, a drawing."""
        return "largest contour" if self.box == "all contours" else self.box

    def with_normalization(self, name: str | None) -> Protocol:
        """The same protocol with another map normalisation, which its name then carries: `gpca+pas`.

        None keeps the protocol's own.
        """
        if name is None or name == self.recipe.normalize:
            return self
        if name not in NORMALIZATIONS:
            raise ConfigError(f"unknown normalization {name!r}{suggest(name, NORMALIZATIONS)}")
        return replace(self, name=f"{self.name}+{name}", recipe=replace(self.recipe, normalize=name))

    def for_given_maps(self) -> Protocol:
        """The same protocol for maps that another program has normalised: they are taken as they are.

        Where t is a share of the maximum, that is the same as dividing by it.
        """
        normalize = "max" if self.share_of_max else "none"
        return replace(self, recipe=replace(self.recipe, normalize=normalize))


def _register(protocol: Protocol) -> Protocol:
    def factory() -> Protocol:
        return protocol

    PROTOCOLS.register(protocol.name, protocol.summary)(factory)
    return protocol


GPCA = _register(Protocol("gpca", "ours: threshold 0.2, largest component", box="largest component"))

WSOLEVAL_V1 = _register(
    Protocol(
        "wsoleval-v1",
        "Choe et al. 2020, MaxBoxAcc: largest contour, best of 1,000 thresholds",
        recipe=BICUBIC,
        quantized=True,
        step=0.001,
        headline="oracle",
        box="largest contour",
        holes=True,
        empty=(0, 0, 0, 0),
        flat_is_empty=False,
        integer_truth=True,
    )
)

WSOLEVAL_V2 = _register(
    replace(
        WSOLEVAL_V1,
        name="wsoleval-v2",
        summary="Choe et al. 2020, MaxBoxAccV2: all contours, IoU 0.3, 0.5 and 0.7",
        box="all contours",
    )
)

ADL = _register(
    Protocol(
        "adl",
        "Choe and Shim 2019: centre crop, 0.2 of the maximum, largest contour",
        view="crop",
        share_of_max=True,
        empty=(0, 0, 1, 1),
    )
)

DANET = _register(
    Protocol(
        "danet",
        "Xue et al. 2019: box around all foreground in the original image, >= t",
        recipe=Recipe("bilinear", "minmax", "normalize", "original"),
        strict=False,
        low=0.05,
        high=0.325,
        step=0.05,
        headline="oracle",
        box="all foreground",
        empty=(0, 0, 0, 0),
        strict_top=True,
        strict_known=True,
    )
)

TSCAM = _register(
    Protocol(
        "tscam",
        "Gao et al. 2021: threshold 0.1, largest contour, top-k hits need more than 0.5",
        fixed=0.1,
        empty=(0, 0, 1, 1),
        strict_top=True,
    )
)

BAS = _register(
    Protocol(
        "bas",
        "Wu et al. 2022: centre crop, threshold 0.15, largest component",
        view="crop",
        recipe=Recipe("bilinear", "minmax", "normalize", "input"),
        fixed=0.15,
        box="largest component",
        strict_top=True,
        strict_known=True,
    )
)


def find_protocols(names: Sequence[str], normalize: str | None = None) -> list[Protocol]:
    """The protocols of these names, each once; `all` stands for every one of them.

    A name may carry its normalisation (`gpca+pas`), as those of results do; else it gets the given one.
    """
    known = list(PROTOCOLS.entries())
    wanted = [n for name in names for n in (known if name == "all" else [name])]
    found = []
    for name in dict.fromkeys(wanted):
        plain, _, own = name.partition("+")
        found.append(PROTOCOLS.create(plain).with_normalization(own or normalize))
    return found


def protocol_table() -> str:
    """How the protocols differ, one column each."""
    protocols = find_protocols(["all"])
    cells = [[""] + [p.name for p in protocols]]
    cells += [[title] + [describe(p) for p in protocols] for title, describe in _ROWS]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def _order(p: Protocol) -> str:
    steps = [p.recipe.interpolation, p.recipe.normalize]
    return ", ".join(steps if p.recipe.first == "resize" else steps[::-1])


def _threshold(p: Protocol) -> str:
    sign = ">" if p.strict else ">="
    value = f"{p.fixed:g}" if p.headline == "fixed" else "best"
    if p.quantized:
        return f"{sign} int({value} max)"
    return f"{sign} {value} max" if p.share_of_max else f"{sign} {value}"


def _empty(p: Protocol) -> str:
    return "whole image" if p.empty is None else "[" + ",".join(map(str, p.empty)) + "]"


def _sign(strict: bool) -> str:
    return f"{'>' if strict else '>='} {HIT:g}"


_ROWS: tuple[tuple[str, Callable[[Protocol], str]], ...] = (
    ("test image", lambda p: "resize 224" if p.view == "resize" else "256, crop 224"),
    ("map", _order),
    ("map size", lambda p: "224x224" if p.recipe.frame == "input" else "original"),
    ("threshold", _threshold),
    ("searched", lambda p: f"{p.thresholds[0]:g}-{p.thresholds[-1]:g} by {p.step:g}"),
    ("box", lambda p: p.box),
    ("no foreground", _empty),
    ("truth boxes", lambda p: "whole pixels" if p.integer_truth else "floats"),
    ("IoU side", lambda p: "x1-x0+1" if p.iou == "pixel" else "x1-x0"),
    ("top-k hit", lambda p: _sign(p.strict_top)),
    ("GT-known hit", lambda p: _sign(p.strict_known)),
)
