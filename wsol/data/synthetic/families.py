"""The invented families: form, plumage and habits, which all species of a family share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsol.data.synthetic.anatomy import Action, Shape
from wsol.data.synthetic.brush import Colour

Scene: TypeAlias = Literal["branch", "trunk", "meadow", "shore", "water", "sky"]
Pattern: TypeAlias = Literal["plain", "streaked", "barred", "spotted"]


@dataclass(frozen=True)
class Plumage:
    """The colours that all species of a family share."""

    back: Colour
    belly: Colour
    head: Colour
    wing: Colour
    hand: Colour  # flight feathers
    tail: Colour
    legs: Colour = (92, 78, 66)
    iris: Colour = (38, 26, 20)
    pattern: Pattern = "plain"


@dataclass(frozen=True)
class Family:
    """`name`: what one bird of it is called. `habits`: its poses and places, each equally likely."""

    name: str
    plural: str
    order: str
    shape: Shape
    plumage: Plumage
    habits: tuple[tuple[Action, Scene], ...]


_PERCHED: tuple[tuple[Action, Scene], ...] = (("stand", "branch"),) * 3 + (("stand", "meadow"),)

# A shape's nine numbers: depth, posture, neck, neck angle, head, bill, tail, wing, legs; the unusual by name.
FAMILIES: tuple[Family, ...] = (
    Family(
        "Finch",
        "Finches",
        "Perching birds",
        Shape(0.60, 30, 0.20, 58, 0.235, (0.62, 0.86), (0.52, 0.17), 0.86, 0.17, tail_fork=0.16),
        Plumage(
            back=(128, 112, 74),
            belly=(222, 200, 152),
            head=(150, 130, 88),
            wing=(92, 78, 58),
            hand=(62, 54, 46),
            tail=(70, 60, 48),
            legs=(150, 112, 92),
            pattern="streaked",
        ),
        _PERCHED,
    ),
    Family(
        "Jay",
        "Jays",
        "Perching birds",
        Shape(0.50, 26, 0.22, 58, 0.215, (0.98, 0.50), (0.95, 0.22), 0.86, 0.24, crest=0.9, tail_fork=-0.1),
        Plumage(
            back=(74, 112, 176),
            belly=(206, 212, 220),
            head=(92, 130, 190),
            wing=(48, 82, 158),
            hand=(34, 56, 118),
            tail=(44, 78, 156),
            legs=(60, 58, 62),
        ),
        _PERCHED,
    ),
    Family(
        "Duck",
        "Ducks",
        "Water birds",
        Shape(
            0.50,
            6,
            0.34,
            72,
            0.185,
            (1.12, 0.56),
            (0.26, 0.12),
            0.86,
            0.14,
            bill_tip=1.0,
            tail_angle=16,
            span=1.05,
        ),
        Plumage(
            back=(140, 124, 104),
            belly=(214, 206, 190),
            head=(122, 96, 72),
            wing=(112, 98, 84),
            hand=(74, 66, 62),
            tail=(84, 74, 66),
            legs=(226, 124, 48),
            pattern="barred",
        ),
        (("swim", "water"),) * 3 + (("stand", "shore"), ("stand", "meadow")),
    ),
    Family(
        "Gull",
        "Gulls",
        "Water birds",
        Shape(
            0.46,
            9,
            0.25,
            58,
            0.180,
            (1.08, 0.44),
            (0.32, 0.15),
            1.16,
            0.26,
            bill_curve=0.1,
            bill_tip=0.4,
            span=1.35,
        ),
        Plumage(
            back=(176, 184, 192),
            belly=(244, 244, 242),
            head=(236, 238, 240),
            wing=(142, 152, 164),
            hand=(52, 54, 60),
            tail=(238, 238, 238),
            legs=(226, 168, 96),
            iris=(70, 60, 30),
        ),
        (("stand", "shore"), ("fly", "sky"), ("fly", "water"), ("swim", "water"), ("stand", "shore")),
    ),
    Family(
        "Woodpecker",
        "Woodpeckers",
        "Hole nesters",
        Shape(0.44, 62, 0.24, 66, 0.200, (1.25, 0.42), (0.48, 0.13), 0.84, 0.10, tail_angle=-14),
        Plumage(
            back=(44, 44, 50),
            belly=(226, 220, 206),
            head=(196, 190, 178),
            wing=(52, 52, 58),
            hand=(34, 34, 40),
            tail=(36, 36, 42),
            pattern="spotted",
        ),
        (("cling", "trunk"),) * 3 + (("stand", "branch"),),
    ),
    Family(
        "Kingfisher",
        "Kingfishers",
        "Hole nesters",
        Shape(0.54, 46, 0.20, 62, 0.228, (1.70, 0.50), (0.30, 0.13), 0.80, 0.08, crest=0.35),
        Plumage(
            back=(28, 142, 160),
            belly=(226, 140, 62),
            head=(30, 120, 142),
            wing=(22, 104, 134),
            hand=(22, 72, 102),
            tail=(24, 92, 124),
            legs=(206, 84, 60),
        ),
        (("stand", "branch"), ("stand", "branch"), ("stand", "shore"), ("fly", "water")),
    ),
    Family(
        "Sandpiper",
        "Sandpipers",
        "Waders",
        Shape(0.44, 12, 0.30, 62, 0.155, (2.0, 0.36), (0.26, 0.12), 0.92, 0.52, bill_curve=0.16),
        Plumage(
            back=(156, 134, 108),
            belly=(242, 238, 230),
            head=(182, 162, 134),
            wing=(128, 108, 88),
            hand=(80, 68, 58),
            tail=(120, 102, 84),
            legs=(170, 152, 74),
            pattern="streaked",
        ),
        (("stand", "shore"),) * 2 + (("wade", "water"), ("fly", "sky")),
    ),
    Family(
        "Heron",
        "Herons",
        "Waders",
        Shape(0.42, 24, 0.86, 70, 0.132, (2.3, 0.62), (0.26, 0.14), 0.88, 0.78, crest=0.8, span=1.3),
        Plumage(
            back=(128, 144, 164),
            belly=(220, 224, 228),
            head=(206, 212, 220),
            wing=(104, 120, 146),
            hand=(60, 68, 88),
            tail=(98, 112, 136),
            legs=(126, 118, 70),
            iris=(220, 180, 50),
        ),
        (("wade", "water"),) * 2 + (("stand", "shore"), ("stand", "meadow")),
    ),
    Family(
        "Warbler",
        "Warblers",
        "Thicket birds",
        Shape(0.54, 24, 0.19, 52, 0.225, (0.62, 0.32), (0.50, 0.14), 0.84, 0.20, tail_fork=0.1),
        Plumage(
            back=(134, 142, 62),
            belly=(240, 222, 106),
            head=(170, 172, 76),
            wing=(92, 96, 62),
            hand=(62, 64, 50),
            tail=(84, 88, 56),
            legs=(120, 92, 76),
        ),
        _PERCHED,
    ),
    Family(
        "Wren",
        "Wrens",
        "Thicket birds",
        Shape(
            0.64,
            22,
            0.19,
            50,
            0.230,
            (0.92, 0.30),
            (0.42, 0.17),
            0.74,
            0.20,
            bill_curve=0.14,
            tail_angle=58,
            tail_fork=-0.1,
        ),
        Plumage(
            back=(146, 92, 54),
            belly=(218, 190, 156),
            head=(158, 108, 70),
            wing=(120, 72, 42),
            hand=(92, 56, 36),
            tail=(124, 76, 46),
            legs=(158, 124, 104),
            pattern="barred",
        ),
        _PERCHED,
    ),
    Family(
        "Dove",
        "Doves",
        "Seed eaters",
        Shape(0.54, 18, 0.27, 64, 0.158, (0.72, 0.34), (0.66, 0.22), 0.92, 0.12, tail_fork=-0.1),
        Plumage(
            back=(164, 148, 144),
            belly=(222, 196, 194),
            head=(190, 170, 172),
            wing=(150, 134, 128),
            hand=(96, 88, 92),
            tail=(132, 122, 124),
            legs=(204, 92, 88),
        ),
        (("stand", "meadow"), ("stand", "branch"), ("stand", "branch"), ("fly", "sky")),
    ),
    Family(
        "Quail",
        "Quails",
        "Seed eaters",
        Shape(0.76, 24, 0.22, 68, 0.175, (0.52, 0.56), (0.22, 0.16), 0.74, 0.20, crest=0.7),
        Plumage(
            back=(110, 106, 112),
            belly=(206, 176, 126),
            head=(136, 124, 118),
            wing=(102, 84, 70),
            hand=(78, 66, 58),
            tail=(96, 90, 94),
            legs=(132, 116, 100),
            pattern="spotted",
        ),
        (("stand", "meadow"), ("stand", "meadow"), ("stand", "shore"), ("stand", "branch")),
    ),
    Family(
        "Hawk",
        "Hawks",
        "Air hunters",
        Shape(
            0.54,
            58,
            0.20,
            74,
            0.185,
            (0.52, 0.62),
            (0.66, 0.24),
            0.94,
            0.16,
            bill_curve=0.42,
            bill_tip=0.3,
            tail_fork=-0.1,
            span=1.3,
        ),
        Plumage(
            back=(112, 94, 80),
            belly=(232, 216, 192),
            head=(128, 110, 94),
            wing=(98, 80, 68),
            hand=(62, 52, 48),
            tail=(122, 100, 84),
            legs=(232, 182, 56),
            iris=(230, 150, 30),
            pattern="barred",
        ),
        (("stand", "branch"), ("stand", "branch"), ("fly", "sky"), ("fly", "meadow")),
    ),
    Family(
        "Swallow",
        "Swallows",
        "Air hunters",
        Shape(
            0.42,
            32,
            0.17,
            48,
            0.190,
            (0.36, 0.40),
            (0.66, 0.24),
            1.14,
            0.09,
            tail_fork=0.62,
            span=1.4,
        ),
        Plumage(
            back=(40, 58, 112),
            belly=(238, 222, 204),
            head=(54, 72, 126),
            wing=(38, 46, 84),
            hand=(32, 34, 54),
            tail=(34, 44, 84),
            legs=(70, 60, 60),
        ),
        (("stand", "branch"), ("fly", "sky"), ("fly", "sky"), ("fly", "meadow")),
    ),
)
