"""Painting one bird: an individual of a species, posed and placed, as a layer of paint.

The layer's alpha is the exact segmentation: all that shows of the bird: body, head, bill, crest, wings, tail,
legs and toes. What is under water does not show, and reflection and shadow are not the bird.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from wsol.data.synthetic.anatomy import Action, Anatomy, Pose, Wing
from wsol.data.synthetic.brush import (
    OVERSAMPLE,
    Colour,
    Layer,
    band,
    closed_curve,
    ellipse,
    lit,
    mix,
    noise,
    open_curve,
    soften,
)
from wsol.data.synthetic.families import Plumage
from wsol.data.synthetic.species import Species

DARK: Colour = (26, 22, 22)


def strike_pose(rng: np.random.Generator, action: Action) -> Pose:
    """A pose, at random within what the action allows."""
    feeding = action == "stand" and rng.random() < 0.15
    flap = rng.uniform(70, 118) if rng.random() < 0.65 else rng.uniform(-128, -98)
    return Pose(
        action=action,
        mirror=bool(rng.random() < 0.5),
        tilt=rng.uniform(-12, 12) if action != "swim" else rng.uniform(-3, 3),
        neck=rng.uniform(-62, -38) if feeding else rng.uniform(-14, 20),
        head=rng.uniform(-35, -15) if feeding else rng.uniform(-14, 16),
        look_back=bool(action in ("stand", "swim") and not feeding and rng.random() < 0.12),
        flap=flap,
    )


def individual(rng: np.random.Generator, plumage: Plumage) -> Plumage:
    """The family's plumage as one bird wears it: a little lighter, darker, warmer or duller.

    The spread is the same for all species of the family, so the body's colour tells nothing of the species.
    """
    light, warm, dull = rng.uniform(0.86, 1.14), rng.uniform(-0.07, 0.07), rng.uniform(0, 0.22)

    def tint(colour: Colour) -> Colour:
        r, g, b = mix(colour, (sum(colour) / 3,) * 3, dull)
        r, g, b = r * light * (1 + warm), g * light, b * light * (1 - warm)
        return lit((r, g, b), 1.0)

    return replace(
        plumage,
        back=tint(plumage.back),
        belly=tint(plumage.belly),
        head=tint(plumage.head),
        wing=tint(plumage.wing),
        hand=tint(plumage.hand),
        tail=tint(plumage.tail),
    )


def paint_bird(
    rng: np.random.Generator, species: Species, bird: Anatomy, height: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Paint a placed bird on a clear layer of the picture's size.

    Returns the colour times alpha, (H, W, 3) from 0 to 255, and alpha, (H, W, 1) from 0 to 1, both float32.
    """
    layer = Layer(height, width)
    plumage = individual(rng, species.family.plumage)
    unit = bird.world.scale
    far, near = bird.wings()

    if bird.pose.action in ("stand", "wade", "cling"):
        _legs(layer, bird, plumage.legs)
    if far:
        _wing(layer, far, _dimmed(plumage), species, unit)
    _tail(layer, bird, plumage)
    if bird.shape.crest:
        layer.fill(bird.crest(), _head_top(species, plumage))
    silhouette = _trunk(layer, bird, plumage)
    _pattern(rng, layer, bird, plumage, silhouette)
    _mark(layer, bird, species, silhouette)
    _bill(layer, bird, species.bill)
    _eye(layer, bird, plumage.iris)
    shadow = layer.area(np.add(near.outline, (0, 0.05 * unit)), soft=0.035 * unit)
    layer.stain(np.minimum(shadow, silhouette), DARK, 0.34)
    _wing(layer, near, plumage, species, unit)
    if bird.pose.action in ("swim", "wade"):
        layer.rgba[round(bird.waterline * OVERSAMPLE) :] = 0
    return _shade(rng, layer, unit)


def _dimmed(plumage: Plumage) -> Plumage:
    return replace(plumage, wing=lit(plumage.wing, 0.78), hand=lit(plumage.hand, 0.8))


def _head_top(species: Species, plumage: Plumage) -> Colour:
    return species.accent if species.mark == "capped" else lit(plumage.head, 0.94)


def _legs(layer: Layer, bird: Anatomy, colour: Colour) -> None:
    thick = max(0.040 * bird.world.scale, 1.1)
    for line, shade in zip(bird.legs(), (0.72, 1.0), strict=True):
        layer.fill(band(line, [thick * 1.9, thick * 1.15, thick]), lit(colour, shade))
    for toe in bird.toes():
        layer.stroke(toe, lit(colour, 0.92), thick * 0.8)


def _tail(layer: Layer, bird: Anatomy, plumage: Plumage) -> None:
    outline, lines = bird.tail()
    layer.fill(outline, plumage.tail)
    for line in lines:
        layer.stroke(line, lit(plumage.tail, 0.72), 0.012 * bird.world.scale)


def _trunk(layer: Layer, bird: Anatomy, plumage: Plumage) -> np.ndarray:
    """Body, neck and head melted into one smooth silhouette; returns its mask."""
    unit = bird.world.scale
    parts = layer.area(*bird.trunk())
    melted = soften(parts, 0.035 * unit * OVERSAMPLE)
    silhouette = cv2.convertScaleAbs(np.maximum(melted, 96) - np.uint8(96), alpha=4.0)
    layer.cover(silhouette, plumage.back)
    belly = layer.area(bird.belly(), soft=0.06 * unit)
    layer.stain(np.minimum(belly, silhouette), plumage.belly)
    head = layer.area(bird.neck_frame(ellipse((0, 0), 1.28, 1.2)), soft=0.09 * unit)
    if bird.shape.neck > 0.5:  # a long neck is of the head's colour
        head = np.maximum(head, layer.area(bird.trunk()[1], soft=0.04 * unit))
    layer.stain(np.minimum(head, silhouette), plumage.head)
    return silhouette


def _pattern(
    rng: np.random.Generator, layer: Layer, bird: Anatomy, plumage: Plumage, inside: np.ndarray
) -> None:
    """Streaks, bars or spots on breast and flank."""
    if plumage.pattern == "plain":
        return
    d, unit = bird.shape.depth, bird.world.scale
    at = np.stack([rng.uniform(-0.35, 0.42, 34), rng.uniform(-0.48, -0.12, 34) * d], axis=1)
    marks = bird.body((at[:, None] + _PATTERNS[plumage.pattern]).reshape(-1, 2)).reshape(34, -1, 2)
    area = layer.area(*(band(mark, [0, 0.022 * unit, 0]) for mark in marks))
    layer.stain(np.minimum(area, inside), mix(plumage.back, DARK, 0.35), 0.5)


_PATTERNS: dict[str, np.ndarray] = {
    "streaked": np.array([(0.0, 0.0), (-0.05, -0.004), (-0.10, 0.0)]),
    "barred": np.array([(0.0, 0.04), (0.012, 0.0), (0.0, -0.04)]),
    "spotted": np.array([(0.016, 0.0), (0.0, 0.002), (-0.016, 0.0)]),
}


def _mark(layer: Layer, bird: Anatomy, species: Species, inside: np.ndarray) -> None:
    """The head mark that names the species, in the head's own frame."""
    if species.mark == "collared":
        outlines = [_collar(bird)]
    else:
        outlines = [bird.head(outline) for outline in _HEAD_MARKS[species.mark]]
    area = layer.area(*outlines, soft=0.05 * bird.shape.head * bird.world.scale)
    layer.stain(np.minimum(area, inside), species.accent)


_HEAD_MARKS: dict[str, tuple[np.ndarray, ...]] = {
    "capped": (closed_curve([(1.2, 0.26), (0.5, 0.34), (-0.3, 0.30), (-1.2, 0.0), (-1.3, 1.3), (1.0, 1.4)]),),
    "masked": (
        closed_curve([(1.15, 0.12), (0.5, 0.44), (-0.2, 0.42), (-1.05, 0.05), (-0.3, -0.28), (0.6, -0.26)]),
    ),
    "browed": (
        closed_curve([(1.0, 0.30), (0.45, 0.66), (-0.3, 0.68), (-1.1, 0.30), (-0.35, 0.36), (0.5, 0.34)]),
    ),
    "throated": (
        closed_curve([(1.1, -0.16), (0.5, -0.22), (0.0, -0.55), (-0.1, -1.25), (0.6, -1.7), (1.35, -0.9)]),
    ),
    "cheeked": (ellipse((-0.12, -0.22), 0.50, 0.42),),
    "naped": (ellipse((-0.86, 0.05), 0.52, 0.95, 0.3),),
}


def _collar(bird: Anatomy) -> np.ndarray:
    """A ring where the neck leaves the head."""
    down = bird.shoulder - bird.neck_frame.origin
    radius = bird.shape.head * bird.world.scale
    down = down / max(float(np.linalg.norm(down)), 1e-9) * radius
    across = np.array([-down[1], down[0]])
    middle = bird.neck_frame.origin + 1.12 * down
    line = [middle - 2.2 * across - 0.15 * down, middle + 0.2 * down, middle + 2.2 * across - 0.15 * down]
    curve = open_curve(np.stack(line))
    return band(curve, np.full(len(curve), 0.52 * radius))


def _bill(layer: Layer, bird: Anatomy, colour: Colour) -> None:
    upper, lower = bird.beak()
    layer.fill(lower, lit(colour, 0.76))
    layer.fill(upper, colour)
    layer.stroke(upper[3:], lit(colour, 0.5), 0.012 * bird.world.scale)
    nostril = bird.head([(0.95 + 0.12 * bird.shape.bill[0], 0.10 * bird.shape.bill[1])])[0]
    radius = 0.06 * bird.shape.head * bird.world.scale
    layer.fill(ellipse(nostril, radius * 1.6, radius), lit(colour, 0.55))


def _eye(layer: Layer, bird: Anatomy, iris: Colour) -> None:
    at = (0.36, 0.16)
    size = max(0.175, 0.030 / bird.shape.head)
    layer.fill(bird.head(ellipse(at, size * 1.30, size * 1.22)), mix((214, 204, 186), DARK, 0.45))
    layer.fill(bird.head(ellipse(at, size * 1.10, size * 1.08)), iris)
    layer.fill(bird.head(ellipse(at, size * 0.80, size * 0.80)), (14, 12, 14))
    glint = (at[0] + 0.28 * size, at[1] + 0.36 * size)
    layer.fill(bird.head(ellipse(glint, 0.34 * size, 0.34 * size)), (255, 255, 255))


def _wing(layer: Layer, wing: Wing, plumage: Plumage, species: Species, unit: float) -> None:
    inside = layer.area(wing.outline)
    layer.cover(inside, plumage.wing)
    shoulder = layer.area(ellipse(wing.shoulder, 0.16 * unit, 0.14 * unit), soft=0.09 * unit)
    layer.stain(np.minimum(shoulder, inside), plumage.back, 0.85)
    hand = np.minimum(layer.area(wing.hand, soft=0.02 * unit), inside)
    layer.stain(hand, plumage.hand)
    lines = layer.area(*(band(f, np.full(len(f), 0.016 * unit)) for f in wing.feathers))
    layer.stain(np.minimum(lines, inside), lit(plumage.hand, 1.75), 0.5)
    for row, bar in enumerate(wing.bars):
        scales = np.minimum(layer.area(_scalloped(bar, 0.044 * unit)), inside)
        if row < species.bars:
            layer.stain(scales, species.bar)
        else:
            layer.stain(scales, lit(plumage.wing, 1.3), 0.35)


def _scalloped(line: np.ndarray, width: float) -> np.ndarray:
    """A band along a row of feather tips, its edge wavy."""
    wave = 1 + 0.28 * np.sin(np.linspace(0, 5 * np.pi, len(line)))
    return band(line, width * wave)


def _shade(rng: np.random.Generator, layer: Layer, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Bring the layer to the picture's size, with light from above and the fine grain of down."""
    paint, alpha = layer.finish()
    h, w = alpha.shape[:2]
    height = soften(alpha[..., 0], 0.085 * unit) + 0.5 * soften(alpha[..., 0], 0.03 * unit)
    slope = cv2.Sobel(height, cv2.CV_32F, 0, 1, scale=0.125) * (0.16 * unit)
    side = cv2.Sobel(height, cv2.CV_32F, 1, 0, scale=0.125) * (0.16 * unit)
    light = 1.0 + np.clip(0.85 * slope + 0.12 * side, -0.42, 0.30)
    down = noise(rng, h, w, (0.06 * unit + 1, 0.03 * unit + 1))
    light = light * (1 + 0.035 * down)
    return np.minimum(paint * light[..., None], 255 * alpha), alpha
