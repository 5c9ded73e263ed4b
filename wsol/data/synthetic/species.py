"""The invented species, and the small marks that tell them apart.

Species of one family share form and main colours. They differ in one head mark, which also names them, in
their wing bars and in the colour of the bill, and in nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from wsol.data.synthetic.brush import Colour, distance
from wsol.data.synthetic.families import FAMILIES, Family

Mark: TypeAlias = Literal["capped", "masked", "throated", "browed", "collared", "cheeked", "naped"]
MARKS: tuple[Mark, ...] = get_args(Mark)

SPECIES_LIMIT = 200
SPECIES_IN_FAMILY = 3  # until the families run out

ACCENTS: dict[str, Colour] = {
    "Amber": (243, 166, 28),
    "Scarlet": (208, 38, 34),
    "White": (247, 245, 238),
    "Violet": (122, 66, 168),
    "Black": (26, 25, 30),
    "Azure": (52, 148, 228),
    "Rusty": (164, 78, 34),
    "Emerald": (30, 148, 88),
    "Rosy": (236, 118, 152),
    "Lemon": (246, 226, 70),
}
BILLS: tuple[Colour, ...] = (
    (44, 42, 46),
    (238, 150, 36),
    (222, 198, 140),
    (200, 54, 46),
    (116, 140, 168),
)


@dataclass(frozen=True)
class Species:
    """One species: its family and the few things that are its own."""

    name: str
    family: Family
    mark: Mark
    accent: Colour
    bars: int
    bar: Colour
    bill: Colour


def roster(count: int) -> tuple[Species, ...]:
    """The first `count` species, family by family, as evenly spread as they can be.

    The same count always gives the same species, whatever the seed of the pictures.
    """
    if not 2 <= count <= SPECIES_LIMIT:
        raise ValueError(f"the number of species must be from 2 to {SPECIES_LIMIT}, not {count}")
    families = min(len(FAMILIES), -(-count // SPECIES_IN_FAMILY))
    small, larger = divmod(count, families)
    return tuple(
        _species(number, member) for number in range(families) for member in range(small + (number < larger))
    )


def _species(number: int, member: int) -> Species:
    """The given member of a family: each head mark in each colour that stands out on it, once."""
    family = FAMILIES[number]
    plumage = family.plumage
    accents = _standing_out(plumage.head, 105.0)
    turn, mark = divmod(member, len(MARKS))
    name = accents[(mark + turn + 3 * number) % len(accents)]
    bars = [ACCENTS[a] for a in _standing_out(plumage.wing, 130.0)]
    word = MARKS[(mark + 2 * number) % len(MARKS)]
    return Species(
        name=f"{name}_{word}_{family.name}",
        family=family,
        mark=word,
        accent=ACCENTS[name],
        bars=member % 3,
        bar=bars[(member * 2 + number) % len(bars)],
        bill=BILLS[(member + number) % len(BILLS)],
    )


def _standing_out(ground: Colour, contrast: float) -> list[str]:
    return [name for name, colour in ACCENTS.items() if distance(colour, ground) > contrast]
