"""Labels on a picture: texts that stay inside it and never lie on each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from wsol.drawing.colours import RGB

Rect = tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels of the picture; x1 and y1 outside


@cache
def font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans as matplotlib ships it: the same letters on every machine, no display, no network."""
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


@dataclass(frozen=True)
class Label:
    """A text on its own background, beside the rectangle that it describes."""

    text: str
    ground: RGB
    beside: Rect


@dataclass(frozen=True)
class PlacedLabel:
    """A label with the text that fits and the place that was found for it."""

    text: str
    ground: RGB
    rect: Rect


def fit_text(text: str, face: ImageFont.FreeTypeFont, width: int) -> str:
    """The text, its middle replaced by an ellipsis where it is wider than `width` pixels.

    Control characters become spaces, so that a file name cannot break the layout.
    """
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if face.getlength(text) <= width:
        return text
    low, high = 0, len(text)
    while low < high:  # the most letters that fit
        keep = (low + high + 1) // 2
        if face.getlength(_elide(text, keep)) <= width:
            low = keep
        else:
            high = keep - 1
    fitted = _elide(text, low)
    return fitted if face.getlength(fitted) <= width else ""


def place_labels(labels: Sequence[Label], size: tuple[int, int], font_size: int) -> list[PlacedLabel]:
    """A place for every label, in order: near its rectangle, inside the picture, free of the earlier ones.

    The corners of the rectangle are tried first, outside it before inside, then every row of the picture from
    the nearest on. A label for which no place is left is dropped: the picture is then too small to read it.
    """
    face, pad, height = font(font_size), padding(font_size), label_height(font_size)
    width, tall = size
    placed: list[PlacedLabel] = []
    for label in labels:
        text = fit_text(label.text, face, width - 2 * pad)
        if not text:
            continue
        wide = round(face.getlength(text)) + 2 * pad
        for x, y in _candidates(label.beside, wide, height, size):
            x = min(max(x, 0), width - wide)
            rect = (x, y, x + wide, y + height)
            if x >= 0 and y >= 0 and y + height <= tall and not any(overlap(rect, p.rect) for p in placed):
                placed.append(PlacedLabel(text, label.ground, rect))
                break
    return placed


def draw_labels(image: Image.Image, placed: Sequence[PlacedLabel], font_size: int) -> None:
    """Write the placed labels onto the picture."""
    draw, face, pad = ImageDraw.Draw(image), font(font_size), padding(font_size)
    for label in placed:
        x0, y0, x1, y1 = label.rect
        draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill=label.ground)
        draw.text((x0 + pad, (y0 + y1) / 2), label.text, fill=(255, 255, 255), font=face, anchor="lm")


def padding(font_size: int) -> int:
    return max(3, round(font_size * 0.4))


def label_height(font_size: int) -> int:
    return round(font_size * 1.5)


def overlap(a: Rect, b: Rect) -> bool:
    """Whether two rectangles share a pixel."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _elide(text: str, keep: int) -> str:
    front = (keep + 1) // 2
    return text[:front].rstrip() + "…" + text[len(text) - (keep - front) :].lstrip()


def _candidates(beside: Rect, wide: int, high: int, size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    x0, y0, x1, y1 = beside
    right = x1 - wide
    yield from ((x0, y0 - high), (x0, y1), (right, y0 - high), (right, y1))
    yield from ((x0, y0), (x0, y1 - high), (right, y0), (right, y1 - high))
    rows = sorted(range(size[1] - high + 1), key=lambda y: abs(y - (y0 - high)))
    for x in (x0, 0, size[0] - wide):
        yield from ((x, y) for y in rows)
