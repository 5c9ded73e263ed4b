"""Photos of a red disc on grey leaves, and a backbone that sees colours: DDT without any trained network."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.weights import IMAGENET, Weights
from wsol.records import Box
from wsol.registry import BACKBONES

NAME = "colours"
SIDE = 96


def register() -> None:
    """Make the backbone `colours` known: the mean colour of cells of 8 x 8 pixels; nothing is random."""
    if NAME not in BACKBONES.entries():

        @BACKBONES.register(NAME, "for tests: mean colours")
        def colours(weights: Weights) -> Backbone:
            network = nn.Sequential(nn.AvgPool2d(8))
            loaded = weights.load(network, IMAGENET)
            places = {"paper": ("cells",)}
            return Backbone({"cells": network}, loaded, placements=places, pyramid=("cells",), gamma=0.9)


def photo(rng: np.random.Generator, disc: bool = True) -> tuple[NDArray[np.uint8], Box]:
    """(SIDE, SIDE, 3) a red disc somewhere on smooth grey noise, and the box around it."""
    grey = cv2.GaussianBlur(rng.normal(size=(SIDE, SIDE)), (0, 0), 5)
    image = np.clip(120 + 8 * grey / grey.std(), 0, 255)[..., None].repeat(3, axis=2)
    radius = int(rng.integers(14, 24))
    x, y = rng.integers(radius, SIDE - radius, 2).tolist()
    if disc:
        cv2.circle(image, (x, y), radius, (230, 20, 20), -1)
    return image.astype(np.uint8), Box(x - radius, y - radius, x + radius + 1, y + radius + 1)


def write_photos(folder: Path, number: int, seed: int = 0, disc: bool = True) -> dict[str, Box]:
    """`number` PNG files, and the box of the disc by the name of the file."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    boxes = {}
    for i in range(number):
        image, box = photo(rng, disc)
        Image.fromarray(image).save(folder / f"{i:03d}.png")
        boxes[f"{i:03d}.png"] = box
    return boxes


def write_noise(folder: Path, number: int, plain: bool = False) -> None:
    """Photos without any object: noise, or one colour each."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(number):
        colour = rng.integers(0, 256, (1, 1, 3) if plain else (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(np.broadcast_to(colour, (SIDE, SIDE, 3)).copy()).save(folder / f"{i:03d}.png")
