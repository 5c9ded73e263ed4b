"""A contact sheet: images of a data set side by side, with their boxes and the names of their classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from wsol.class_names import display_name
from wsol.data.image import read_image
from wsol.data.take_evenly import take_evenly
from wsol.errors import DataError
from wsol.records import DataIndex, Sample
from wsol.runs.files import replacing

TILE = 200  # side of the square that an image is fitted into
GAP = 14
CAPTION = 24
HEADER = 64
RADIUS = 8
SCALE = 2  # drawn larger and shrunk, so that corners and thin lines come out smooth

PAPER, INK, PALE, TILE_COLOUR, BOX_COLOUR = "#ffffff", "#1d2430", "#6b7480", "#eef0f3", "#e5252a"


def draw_contact_sheet(
    index: DataIndex,
    out: Path,
    columns: int = 6,
    rows: int = 4,
    caption: Callable[[Sample], str] | None = None,
    counts: str | None = None,
) -> Path:
    """Write a PNG with `columns` x `rows` images, fewer where the data set has fewer, and return its path.

    The choice is the same each time: classes spread evenly over the data set, and in turn over each class.

    caption: what stands below an image, by default the name of its class. counts: what stands at the top, by
    default how many images and classes there are.
    """
    samples = choose_samples(index, columns * rows)
    if not samples:
        raise DataError(f"{index.root}: no images to draw")
    columns = min(columns, len(samples))
    rows = -(-len(samples) // columns)
    width = GAP + columns * (TILE + GAP)
    sheet = Image.new("RGB", (width, HEADER + rows * (TILE + CAPTION + GAP) + GAP), PAPER)
    counts = counts or f"{len(index.samples):,} images   {len(index.classes):,} classes"
    _write_header(sheet, index.root.resolve().name, counts)
    for i, sample in enumerate(samples):
        x = GAP + (i % columns) * (TILE + GAP)
        y = HEADER + (i // columns) * (TILE + CAPTION + GAP)
        sheet.paste(_draw_tile(sample), (x, y))
        text = caption(sample) if caption else display_name(index.classes[sample.label])
        _write_caption(sheet, (x, y + TILE), text)
    with replacing(out, parents=True) as draft:
        sheet.save(draft, format="PNG")
    return out


def choose_samples(index: DataIndex, count: int) -> list[Sample]:
    """`count` samples from as many classes as possible, in the order of classes."""
    by_class: dict[int, list[Sample]] = defaultdict(list)
    for sample in sorted(index.samples, key=lambda s: s.name):
        by_class[sample.label].append(sample)
    labels = sorted(by_class)
    shares = [0] * len(labels)  # how many each class gives
    left = min(count, len(index.samples))
    while left > 0:
        open_classes = [i for i, label in enumerate(labels) if shares[i] < len(by_class[label])]
        turn = open_classes if left >= len(open_classes) else take_evenly(open_classes, left)
        for i in turn:
            shares[i] += 1
        left -= len(turn)
    return [s for i, label in enumerate(labels) if shares[i] for s in take_evenly(by_class[label], shares[i])]


def _draw_tile(sample: Sample) -> Image.Image:
    """The image fitted into a square with rounded corners, its boxes on it; a sign if unreadable."""
    side = TILE * SCALE
    tile = Image.new("RGB", (side, side), TILE_COLOUR)
    draw = ImageDraw.Draw(tile)
    try:
        photo = Image.fromarray(read_image(sample.path))
    except DataError:
        draw.text((side / 2, side / 2), "cannot be read", BOX_COLOUR, _font(14 * SCALE), anchor="mm")
    else:
        scale = side / max(photo.size)
        shown = photo.resize((max(1, round(photo.width * scale)), max(1, round(photo.height * scale))))
        left, top = (side - shown.width) // 2, (side - shown.height) // 2
        tile.paste(shown, (left, top))
        for box in sample.boxes:
            x0, y0, x1, y1 = (v * scale for v in box)
            # The line is drawn inwards, so that a box at the edge of its image stays in sight.
            draw.rounded_rectangle(
                (left + x0, top + y0, left + x1 - 1, top + y1 - 1),
                3 * SCALE,
                outline=BOX_COLOUR,
                width=2 * SCALE,
            )
    corners = Image.new("L", (side, side), 0)
    ImageDraw.Draw(corners).rounded_rectangle((0, 0, side - 1, side - 1), RADIUS * SCALE, fill=255)
    framed = Image.composite(tile, Image.new("RGB", tile.size, PAPER), corners)
    return framed.resize((TILE, TILE), Image.Resampling.LANCZOS)


def _write_header(sheet: Image.Image, title: str, counts: str) -> None:
    draw = ImageDraw.Draw(sheet)
    draw.text((GAP, 14), title, INK, _font(22))
    draw.text((sheet.width - GAP, 18), counts, PALE, _font(15), anchor="ra")


def _write_caption(sheet: Image.Image, place: tuple[int, int], text: str) -> None:
    draw, font = ImageDraw.Draw(sheet), _font(13)
    if draw.textlength(text, font) > TILE:
        while text and draw.textlength(text + "…", font) > TILE:
            text = text[:-1]
        text = text.rstrip() + "…"
    draw.text((place[0] + TILE / 2, place[1] + CAPTION / 2), text, INK, font, anchor="mm")


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
