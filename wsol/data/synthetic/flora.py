"""What grows and lies around the birds: leaves, fruit, twigs, boughs, grass and stones.

Fruit, blossoms and some stones take the colours of the birds' marks at random, so that a colour beside the
bird tells nothing of the bird.
"""

from __future__ import annotations

import numpy as np

from wsol.data.synthetic.brush import Colour, Layer, Points, band, closed_curve, ellipse, lit, mix
from wsol.data.synthetic.species import ACCENTS

GRASS: tuple[Colour, ...] = ((92, 132, 54), (128, 146, 66), (168, 152, 84), (76, 110, 62))
BARK: tuple[Colour, ...] = ((104, 84, 68), (128, 112, 96), (88, 74, 64), (144, 124, 100))
LEAVES: tuple[Colour, ...] = ((74, 122, 46), (112, 152, 58), (56, 96, 52), (190, 142, 54), (168, 84, 44))
STONES: tuple[Colour, ...] = ((128, 126, 122), (156, 148, 138), (104, 102, 104), (176, 168, 156))


def accent(rng: np.random.Generator) -> Colour:
    """Any colour that a bird's mark can have."""
    return list(ACCENTS.values())[rng.integers(len(ACCENTS))]


def pick(rng: np.random.Generator, colours: tuple[Colour, ...]) -> Colour:
    """One of the colours, a little lighter or darker."""
    return lit(colours[rng.integers(len(colours))], rng.uniform(0.85, 1.15))


def leaf(layer: Layer, at: Points, angle: float, length: float, colour: Colour) -> None:
    c, s = np.cos(angle) * length, np.sin(angle) * length
    outline = _LEAF @ np.array([[c, s], [-s, c]]) + at
    layer.fill(outline, colour)
    layer.fill(outline[: len(outline) // 2], lit(colour, 1.16))


_LEAF = closed_curve([(0, 0), (0.35, 0.2), (0.75, 0.14), (1, 0), (0.7, -0.17), (0.3, -0.2)])


def berry(rng: np.random.Generator, layer: Layer, at: Points, size: float) -> None:
    colour, x, y = accent(rng), at[0], at[1]
    layer.fill(ellipse(at, size, size), colour)
    layer.fill(ellipse((x, y + 0.4 * size), 0.8 * size, 0.55 * size), lit(colour, 0.8))
    shine = (x - 0.35 * size, y - 0.35 * size)
    layer.fill(ellipse(shine, 0.25 * size, 0.25 * size), mix(colour, (255, 255, 255), 0.7))


def blossom(rng: np.random.Generator, layer: Layer, at: Points, size: float) -> None:
    colour = accent(rng)
    for turn in rng.uniform(0, 1) + np.linspace(0, 2 * np.pi, 5, endpoint=False):
        petal = at + 0.75 * size * np.array([np.cos(turn), np.sin(turn)])
        layer.fill(ellipse(petal, 0.72 * size, 0.5 * size, turn), lit(colour, rng.uniform(0.9, 1.1)))
    layer.fill(ellipse(at, 0.42 * size, 0.42 * size), (238, 200, 80))


def twig(
    rng: np.random.Generator, layer: Layer, start: Points, angle: float, length: float, bark: Colour
) -> None:
    """A thin side branch with leaves, and perhaps berries or blossoms."""
    bend = rng.uniform(-0.5, 0.5)
    steps = np.linspace(0, 1, 6)[:, None]
    turn = angle + bend * steps
    line = start + length * steps * np.concatenate([np.cos(turn), np.sin(turn)], axis=1)
    layer.fill(band(line, np.linspace(0.045, 0.015, 6) * length), bark)
    green = pick(rng, LEAVES)
    for i in range(1, 6):
        for side in (-1, 1):
            if rng.random() < 0.8:
                tilt = angle + bend * i / 5 + side * rng.uniform(0.5, 1.0)
                leaf(
                    layer, line[i], tilt, length * rng.uniform(0.2, 0.34), lit(green, rng.uniform(0.82, 1.15))
                )
    if rng.random() < 0.6:
        fruit = berry if rng.random() < 0.6 else blossom
        for i in rng.integers(1, 6, rng.integers(1, 5)):
            at = line[i] + rng.normal(0, 0.06 * length, 2)
            fruit(rng, layer, at, length * rng.uniform(0.05, 0.085))


def bough(rng: np.random.Generator, layer: Layer, line: Points, thick: float, bark: Colour) -> None:
    """A branch, light above and dark below, with lines in its bark."""
    widths = thick * np.linspace(rng.uniform(0.8, 1.5), rng.uniform(0.5, 1.2), len(line))
    layer.fill(band(line, widths), bark)
    layer.fill(band(line + (0, 0.26) * widths[:, None], widths * 0.48), lit(bark, 0.68))
    layer.fill(band(line - (0, 0.34) * widths[:, None], widths * 0.16), lit(bark, 1.28))
    for _ in range(10):
        i = int(rng.integers(0, len(line) - 4))
        shift = (0, rng.uniform(-0.35, 0.4) * thick)
        layer.stroke(line[i : i + 4] + shift, lit(bark, rng.uniform(0.6, 0.85)), 0.05 * thick)


def tuft(rng: np.random.Generator, layer: Layer, at: Points, size: float, colour: Colour) -> None:
    """Blades of grass from one root."""
    blades = int(rng.integers(4, 9))
    root = at + np.stack([rng.normal(0, 0.12, blades) * size, np.zeros(blades)], axis=1)
    lean, tall = rng.normal(0, 0.45, blades) * size, rng.uniform(0.5, 1.0, blades) * size
    middle = root + np.stack([0.3 * lean, -0.5 * tall], axis=1)
    tip = at + np.stack([lean, -tall], axis=1)
    half = np.array([0.045 * size, 0])
    outlines = np.stack([root - half, middle - 0.7 * half, tip, middle + 0.7 * half, root + half], axis=1)
    for outline, shade in zip(outlines, rng.uniform(0.75, 1.25, blades), strict=True):
        layer.fill(outline, lit(colour, shade))


def stone(rng: np.random.Generator, layer: Layer, at: Points, size: float) -> None:
    colour = accent(rng) if rng.random() < 0.12 else pick(rng, STONES)
    turn = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    radius = size * rng.uniform(0.8, 1.15, 8)
    outline = closed_curve(at + np.stack([radius * np.cos(turn), 0.6 * radius * np.sin(turn)], axis=1))
    layer.fill(outline, lit(colour, 0.78))
    layer.fill((outline - at) * (0.86, 0.7) + at - (0, 0.12 * size), colour)
