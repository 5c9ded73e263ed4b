"""Many pictures on one sheet: rows and columns with headings, as a paper's figure compares methods."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from wsol.drawing.colours import RGB
from wsol.drawing.labels import fit_text, font

GAP = 10
MARGIN = 16
INK: RGB = (28, 28, 30)
FAINT: RGB = (110, 110, 118)
SHEET: RGB = (255, 255, 255)


def draw_grid(
    rows: Sequence[Sequence[Image.Image]],
    columns: Sequence[str] = (),
    captions: Sequence[str] = (),
    title: str = "",
) -> Image.Image:
    """A sheet of pictures.

    Args:
        rows: the pictures of each row; rows may end early. A column is as wide as its widest picture and a
            row as high as its highest; the others stand in the middle of their cell.
        columns: a heading above each column.
        captions: a line above each row.
        title: a line above everything.
    """
    num_columns = max((len(row) for row in rows), default=0)
    widths = [max(row[i].width for row in rows if i < len(row)) for i in range(num_columns)]
    heights = [max(picture.height for picture in row) for row in rows]
    size = max(13, min(22, round(max(widths, default=300) / 20)))
    line = round(size * 1.9)
    width = 2 * MARGIN + sum(widths) + GAP * max(len(widths) - 1, 0)
    top = MARGIN + (line if title else 0) + (line if columns else 0)
    height = top + sum(heights) + GAP * len(rows) + (line * len(rows) if captions else 0) + MARGIN - GAP
    sheet = Image.new("RGB", (width, max(height, top + MARGIN)), SHEET)
    draw = ImageDraw.Draw(sheet)

    def write(x: int, y: int, room: int, text: str, anchor: str, ink: RGB = INK, bold: bool = True) -> None:
        face = font(size, bold)
        draw.text((x, y + line / 2), fit_text(text, face, room), fill=ink, font=face, anchor=anchor)

    if title:
        write(MARGIN, MARGIN, width - 2 * MARGIN, title, "lm")
    lefts = [MARGIN + sum(widths[:i]) + GAP * i for i in range(len(widths))]
    for left, wide, heading in zip(lefts, widths, columns, strict=False):
        write(left + wide // 2, top - line, wide, heading, "mm")
    y = top
    for i, (row, high) in enumerate(zip(rows, heights, strict=True)):
        if captions:
            write(MARGIN, y, width - 2 * MARGIN, captions[i], "lm", FAINT, bold=False)
            y += line
        for left, wide, picture in zip(lefts, widths, row, strict=False):
            sheet.paste(picture, (left + (wide - picture.width) // 2, y + (high - picture.height) // 2))
        y += high + GAP
    return sheet


def in_rows(pictures: Sequence[Image.Image]) -> list[list[Image.Image]]:
    """The pictures in reading order, in up to six columns: a full last row first, then about 4 to 3."""
    num = len(pictures)
    choices = range(min(num, 3), min(num, 6) + 1) if num else (1,)
    columns = min(choices, key=lambda c: (-num % c, abs(c - (4 / 3 * num) ** 0.5)))
    return [list(pictures[i : i + columns]) for i in range(0, num, columns)]
