"""The named protocols: how a map becomes a box and a box becomes a hit, as data.

The field's numbers come from evaluations that disagree in the test image, the order of resizing and
normalising, the threshold, the box, the box of an empty foreground and the rule of a hit. A `Protocol` states
all of it: an *extraction* (from a map to boxes, `wsol.localization.extraction`) and a *hit rule*, which
`wsol.scoring.judge` applies. No code asks for a protocol's name, and every printed number carries it.

The paper leaves crop, threshold and box open: `gpca` is our choice. A protocol that has the name of other
work computes what that work's public code prints. What such code does not do at all is our choice: a fixed
threshold where it only searches is 0.2; where it has a fixed one, thresholds are searched in steps of 0.01.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from wsol.data.transforms import ViewKind
from wsol.errors import ConfigError
from wsol.localization.extraction import Extraction, FarEnd
from wsol.localization.maps import Recipe
from wsol.localization.predictions import ClassesBy
from wsol.registry import PROTOCOLS
from wsol.scoring.iou import Convention
from wsol.scoring.means import Mean
from wsol.scoring.truths import TruthRule

VIEWS: tuple[ViewKind, ...] = ("resize", "crop")

BICUBIC = Recipe("bicubic", "minmax", "resize", "input")


@dataclass(frozen=True)
class Protocol:
    """One way of the field to score a map: an extraction and a hit rule.

    version: goes up when the numbers of a protocol change, so that old scores are told from new ones.
    headline: which threshold the protocol's own figure uses, ``fixed`` or ``oracle``.
    truths: how truth boxes are brought into the frame of the map (`wsol.scoring.truths`).
    iou: how the sides of a box are counted.
    strict_top, strict_known: whether a hit is IoU > 0.5 or >= 0.5, for top-k and for GT-known localization.
    classes_by: what ranks the classes: the ``view`` that gives the map, or ``ten crops``, which take ten more
    passes of each test image through the network.
    mean: whether figures are means over ``images``, or over ``classes``: the mean of each class's figure.
    boxes: whether boxes are measured; False for classes alone, as of plain classifiers. Of the extraction
    only the view counts then.
    """

    name: str
    summary: str
    extraction: Extraction = field(default_factory=Extraction)
    version: int = 1
    headline: Literal["fixed", "oracle"] = "fixed"
    truths: TruthRule = "clipped"
    iou: Convention = "pixel"
    strict_top: bool = False
    strict_known: bool = False
    classes_by: ClassesBy = "view"
    mean: Mean = "images"
    boxes: bool = True

    @property
    def view(self) -> ViewKind:
        """The test image that the protocol looks at."""
        return self.extraction.view

    def with_normalization(self, name: str | None) -> Protocol:
        """The same protocol with another map normalisation, which its name then carries: `gpca+pas`.

        None keeps the protocol's own.
        """
        if name is None or name == self.extraction.recipe.normalize:
            return self
        changed = self.extraction.with_normalization(name)
        return replace(self, name=f"{self.name}+{name}", extraction=changed)

    def for_own_cut(self, cut: float | None) -> Protocol:
        """The same protocol for raw maps that bring a cut of their own, which stands for every threshold.

        None for maps that do not.
        """
        if cut is None:
            return self
        return replace(self, extraction=self.extraction.for_own_cut(cut), headline="fixed")

    def for_given_maps(self) -> Protocol:
        """The same protocol for maps that another program has normalised: they are taken as they are."""
        return replace(self, extraction=self.extraction.for_given_maps())


def register_protocol(protocol: Protocol) -> Protocol:
    """Make a protocol known by its name: to configs, to `wsol evaluate --protocol`, to every table.

    >>> from wsol.localization.extraction import Extraction
    >>> loose = Protocol("loose", "like gpca, but cut at 0.1", Extraction(fixed=0.1, box="largest component"))
    >>> register_protocol(loose).name  # doctest: +SKIP
    'loose'
    """

    def factory() -> Protocol:
        return protocol

    PROTOCOLS.register(protocol.name, protocol.summary)(factory)
    return protocol


GPCA = register_protocol(
    Protocol("gpca", "ours: threshold 0.2, largest component", Extraction(box="largest component"))
)

WSOLEVAL_V1 = register_protocol(
    Protocol(
        "wsoleval-v1",
        "Choe et al. 2020, MaxBoxAcc: largest contour, best of 1,000 thresholds",
        Extraction(
            recipe=BICUBIC,
            grey="bytes",
            step=0.001,
            box="largest contour",
            holes=True,
            empty=(0, 0, 0, 0),
            flat_is_empty=False,
        ),
        headline="oracle",
        truths="whole pixels",
    )
)

WSOLEVAL_V2 = register_protocol(
    replace(
        WSOLEVAL_V1,
        name="wsoleval-v2",
        summary="Choe et al. 2020, MaxBoxAccV2: all contours, IoU 0.3, 0.5 and 0.7",
        extraction=replace(WSOLEVAL_V1.extraction, box="all contours"),
    )
)

ADL = register_protocol(
    Protocol(
        "adl",
        "Choe and Shim 2019: centre crop, grey image of a coloured map, 0.2 of the maximum, largest contour",
        Extraction(view="crop", grey="colours", far_end="beyond", empty=(0, 0, 1, 1)),
        version=2,
        truths="moved",
    )
)

DANET = register_protocol(
    Protocol(
        "danet",
        "Xue et al. 2019: box around all foreground in the original image, classes by ten crops",
        Extraction(
            recipe=Recipe("bilinear", "minmax", "normalize", "original"),
            strict=False,
            searched=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
            box="all foreground",
            far_end="last",
            empty=(0, 0, 0, 0),
        ),
        version=2,
        headline="oracle",
        truths="last pixel",
        strict_top=True,
        strict_known=True,
        classes_by="ten crops",
    )
)

TSCAM = register_protocol(
    Protocol(
        "tscam",
        "Gao et al. 2021: 8-bit map, 0.1 of the maximum, largest contour, top-k hits need more than 0.5",
        Extraction(grey="bytes", fixed=0.1, far_end="beyond", empty=(0, 0, 1, 1)),
        version=2,
        truths="whole sides",
        strict_top=True,
    )
)

BAS = register_protocol(
    Protocol(
        "bas",
        "Wu et al. 2022: centre crop, threshold 0.15, largest component, ten crops, mean over classes",
        Extraction(
            view="crop",
            recipe=Recipe("bilinear", "minmax", "normalize", "input"),
            fixed=0.15,
            box="first largest component",
            far_end="beyond",
        ),
        version=2,
        truths="cropped",
        strict_top=True,
        strict_known=True,
        classes_by="ten crops",
        mean="classes",
    )
)

BAS_EXT = register_protocol(
    replace(
        BAS,
        name="bas-ext",
        summary="Zhai et al. 2023: as bas, threshold 0.1, hits need 0.5, mean over images",
        extraction=replace(
            BAS.extraction, recipe=Recipe("bilinear", "minmax-eps", "normalize", "input"), fixed=0.1
        ),
        version=1,
        truths="cropped pixels",
        strict_top=False,
        strict_known=False,
        mean="images",
    )
)

CLASSES = register_protocol(
    Protocol("classes", "classes alone, of the whole image: for plain classifiers", boxes=False)
)

CLASSES_CROP = register_protocol(
    replace(
        CLASSES,
        name="classes-crop",
        summary="classes alone, of the centre crop: for plain classifiers",
        extraction=Extraction(view="crop"),
    )
)


def find_protocols(names: Sequence[str] | str, normalize: str | None = None) -> list[Protocol]:
    """The protocols of these names, each once; `all` stands for every one that measures boxes.

    A name may carry its normalisation (`gpca+pas`), as those of results do; else it gets the given one.
    """
    names = [names] if isinstance(names, str) else names
    known = [name for name in PROTOCOLS.entries() if PROTOCOLS.create(name).boxes]
    wanted = [n for name in names for n in (known if name == "all" else [name])]
    found = []
    for name in dict.fromkeys(wanted):
        plain, _, own = name.partition("+")
        found.append(PROTOCOLS.create(plain).with_normalization(own or normalize))
    return found


def require_boxes(protocol: Protocol) -> None:
    """Raise where a protocol measures classes alone, and boxes are wanted."""
    if not protocol.boxes:
        raise ConfigError(f"protocol {protocol.name!r} measures classes alone, not boxes; take another one")


def describe_protocols() -> list[list[str]]:
    """How the protocols differ, as rows of cells: the names in the first row, a column for each."""
    protocols = find_protocols("all")
    cells = [["", *(p.name for p in protocols)]]
    return cells + [[title, *(describe(p) for p in protocols)] for title, describe in _ROWS]


def _order(p: Protocol) -> str:
    recipe = p.extraction.recipe
    steps = [recipe.interpolation, recipe.normalize]
    return ", ".join(steps if recipe.first == "resize" else steps[::-1])


def _threshold(p: Protocol) -> str:
    e = p.extraction
    sign = ">" if e.strict else ">="
    value = f"{e.fixed:g}" if p.headline == "fixed" else "best"
    return f"{sign} {value}" if e.grey is None else f"{sign} int({value} max)"


def _searched(p: Protocol) -> str:
    grid = p.extraction.thresholds
    return f"{grid[0]:g}-{grid[-1]:g} by {grid[1] - grid[0]:g}"


def _empty(p: Protocol) -> str:
    empty = p.extraction.empty
    return "whole image" if empty is None else "[" + ",".join(map(str, empty)) + "]"


def _sign(strict: bool) -> str:
    return "> 0.5" if strict else ">= 0.5"


_FAR_ENDS: dict[FarEnd, str] = {"clipped": "x+w, <= W-1", "beyond": "x+w", "last": "x+w-1"}

_ROWS: tuple[tuple[str, Callable[[Protocol], str]], ...] = (
    ("version", lambda p: str(p.version)),
    ("test image", lambda p: "resize 224" if p.view == "resize" else "256, crop 224"),
    ("map", _order),
    ("map size", lambda p: "224x224" if p.extraction.recipe.frame == "input" else "original"),
    ("cut", lambda p: {None: "map", "bytes": "8-bit map", "colours": "8-bit colours"}[p.extraction.grey]),
    ("threshold", _threshold),
    ("searched", _searched),
    ("box", lambda p: p.extraction.box),
    ("no foreground", _empty),
    ("far end", lambda p: _FAR_ENDS[p.extraction.far_end]),
    ("truth boxes", lambda p: p.truths),
    ("IoU side", lambda p: "x1-x0+1" if p.iou == "pixel" else "x1-x0"),
    ("top-k hit", lambda p: _sign(p.strict_top)),
    ("GT-known hit", lambda p: _sign(p.strict_known)),
    ("classes by", lambda p: p.classes_by),
    ("mean over", lambda p: p.mean),
)
