"""A data set of painted birds, in the layout of CUB-200-2011."""

from __future__ import annotations

import cv2
import numpy as np

from wsol.data.anatomy import Anatomy, place
from wsol.data.birds import paint_bird, strike_pose
from wsol.data.brush import over, soften
from wsol.data.scenes import paint_scene
from wsol.data.species import Species

# Daylight: morning, noon, evening and overcast, as a factor on red, green and blue.
LIGHTS = ((1.0, 1.0, 1.0), (1.05, 1.0, 0.93), (1.10, 0.99, 0.84), (0.93, 0.98, 1.05))


def paint_picture(
    rng: np.random.Generator, species: Species, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """One picture of a species, its long side `size`.

    Returns the RGB image, (H, W, 3) uint8, and the mask of the bird, (H, W) uint8 of 0 and 255.
    """
    aspect = np.exp(rng.uniform(-1, 1) * np.log(4 / 3))
    width, height = round(size * min(1.0, aspect)), round(size * min(1.0, 1 / aspect))
    habits = species.family.habits
    action, scene = habits[rng.integers(len(habits))]
    pose = strike_pose(rng, action)
    whole = np.array([width, height], dtype=float)
    room = whole * rng.uniform(0.30, 0.78)
    corner = rng.uniform(0.03, 0.97 - room / whole) * whole
    bird = place(species.family.shape, pose, corner, corner + room)

    picture = paint_scene(rng, scene, bird, height, width)
    layer = paint_bird(rng, species, bird, height, width)
    if action in ("swim", "wade"):
        picture = _reflect(picture, bird, layer)
    picture = over(picture, layer)
    light = np.array(LIGHTS[rng.integers(len(LIGHTS))], np.float32) * rng.uniform(0.88, 1.08)
    grain = rng.standard_normal((height, width, 1), np.float32) * rng.uniform(1.0, 4.0)
    image = np.clip(picture * light + grain, 0, 255).astype(np.uint8)
    return image, np.where(layer[1][..., 0] >= 128 / 255, np.uint8(255), np.uint8(0))


def _reflect(
    picture: np.ndarray, bird: Anatomy, layer: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The bird upside down in the water below it, faint and broken by waves."""
    h, w = picture.shape[:2]
    rows, columns = np.indices((h, w), dtype=np.float32)
    below = rows - np.float32(bird.waterline)
    wave = np.sin(below * 1.1) * np.minimum(below * 0.05, 1.5)
    mirrored = (columns + wave, np.float32(bird.waterline) - below)
    paint, alpha = (cv2.remap(part, *mirrored, cv2.INTER_LINEAR) for part in layer)
    weight = np.where(below > 0, 0.42 * np.exp(-below / (0.5 * h)), 0)[..., None]
    blur = 0.006 * h
    return over(picture, (soften(paint, blur) * weight, soften(alpha, blur)[..., None] * weight))
