"""A photo with its heat, the predicted box in blue, the true box in red, and labels.

Everything is drawn at a size where lines and letters can be read: small photos are enlarged and huge ones
shrunk, so that the longer side of the picture lies between MIN_SIDE and MAX_SIDE. A very thin photo gets
a dark background. The stroke of a true box lies just outside the box and that of a predicted one just inside,
so that both are seen where they coincide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wsol.drawing.colours import CASING, PAPER, PREDICTED, RGB, TRUTH, blend_heat, to_levels
from wsol.drawing.labels import Label, Rect, draw_labels, place_labels
from wsol.records import Box

MIN_SIDE, MAX_SIDE = 512, 1024
THIN = 0.4  # the shorter side of a picture is at least this part of the longer one


@dataclass(frozen=True)
class Marked:
    """A box of the original image and the text that belongs to it ('' for none)."""

    box: Box
    label: str = ""


@dataclass(frozen=True)
class PictureFrame:
    """Where the photo lies in its picture: pixel x of the original is drawn at x * scale + left."""

    size: tuple[int, int]  # of the picture
    photo: tuple[int, int]  # of the photo within it
    left: int
    top: int
    line: int  # width of a box line
    font_size: int
    scale: tuple[float, float]

    @classmethod
    def around(cls, width: int, height: int, largest: int = MAX_SIDE) -> PictureFrame:
        """The frame of a photo of that size; no side of its picture is longer than `largest`."""
        smallest = min(MIN_SIDE, largest)
        line = max(2, round(largest / 300))
        margin = line + 1  # so that the stroke of a true box at the photo's edge is seen
        inner = max(width, height)
        longer = min(max(inner, smallest - 2 * margin), largest - 2 * margin)
        photo = max(1, round(width * longer / inner)), max(1, round(height * longer / inner))
        shorter = round(THIN * longer)
        size = max(photo[0], shorter) + 2 * margin, max(photo[1], shorter) + 2 * margin
        return cls(
            size=size,
            photo=photo,
            left=(size[0] - photo[0]) // 2,
            top=(size[1] - photo[1]) // 2,
            line=line,
            font_size=max(12, round(max(size) / 40)),
            scale=(photo[0] / width, photo[1] / height),
        )

    def rect(self, box: Box) -> Rect:
        """The box in pixels of the picture, clipped to the photo and at least one pixel large."""
        x0, x1 = (min(max(round(v * self.scale[0]), 0), self.photo[0]) for v in (box.x0, box.x1))
        y0, y1 = (min(max(round(v * self.scale[1]), 0), self.photo[1]) for v in (box.y0, box.y1))
        x0, y0 = min(x0, self.photo[0] - 1), min(y0, self.photo[1] - 1)
        return x0 + self.left, y0 + self.top, max(x1, x0 + 1) + self.left, max(y1, y0 + 1) + self.top


def draw_overlay(
    image: NDArray[np.uint8],
    heat: NDArray[np.floating] | None = None,
    predicted: Sequence[Marked] = (),
    truth: Sequence[Marked] = (),
    notes: Sequence[str] = (),
    largest: int = MAX_SIDE,
    heat_region: Box | None = None,
) -> Image.Image:
    """The picture of one image.

    Args:
        image: (H, W, 3) RGB.
        heat: (h, w) in [0, 1] at any resolution.
        predicted: boxes to draw in blue, with their labels.
        truth: boxes to draw in red.
        notes: further lines of text, placed at the bottom left.
        largest: the longest side that the picture may have.
        heat_region: the part of the image that the heat covers; None for all of it.
    """
    frame = PictureFrame.around(image.shape[1], image.shape[0], largest)
    photo = Image.fromarray(image).resize(frame.photo, Image.Resampling.LANCZOS, reducing_gap=3.0)
    if heat is not None:
        photo = Image.fromarray(blend_heat(np.asarray(photo), _spread(heat, frame, heat_region)))
    picture = Image.new("RGB", frame.size, PAPER)
    picture.paste(photo, (frame.left, frame.top))
    labels = []
    for marks, colour, outside in ((truth, TRUTH, True), (predicted, PREDICTED, False)):
        for mark in marks:
            rect = frame.rect(mark.box)
            draw_box(picture, rect, colour, frame.line, outside)
            if mark.label:
                labels.append(Label(mark.label, colour, rect))
    corner = (0, frame.size[1], 0, frame.size[1])
    # What was predicted is placed first: it matters most, so it gets the place beside its box.
    labels = [*reversed(labels), *(Label(note, PAPER, corner) for note in notes)]
    draw_labels(picture, place_labels(labels, frame.size, frame.font_size), frame.font_size)
    return picture


def draw_box(picture: Image.Image, rect: Rect, colour: RGB, line: int, outside: bool) -> None:
    """A rectangle whose stroke lies outside or inside `rect`, with a thin casing on its free side."""
    draw = ImageDraw.Draw(picture)
    x0, y0, x1, y1 = rect
    step = -1 if outside else 1
    for i in range(line + 1):
        offset = (i if not outside else i + 1) * step
        corners = (x0 + offset, y0 + offset, x1 - 1 - offset, y1 - 1 - offset)
        if corners[2] >= corners[0] and corners[3] >= corners[1]:
            draw.rectangle(corners, outline=colour if i < line else CASING)


def _spread(heat: NDArray[np.floating], frame: PictureFrame, region: Box | None) -> NDArray[np.uint8]:
    """The heat as levels over the whole photo: smooth inside its region, cold outside."""
    levels = np.zeros(frame.photo[::-1], np.uint8)
    if region is None:
        x0, y0, x1, y1 = 0, 0, *frame.photo
    else:
        x0, y0, x1, y1 = frame.rect(region)
        x0, y0, x1, y1 = x0 - frame.left, y0 - frame.top, x1 - frame.left, y1 - frame.top
    source = Image.fromarray(to_levels(heat))
    levels[y0:y1, x0:x1] = np.asarray(source.resize((x1 - x0, y1 - y0), Image.Resampling.BICUBIC))
    return levels
