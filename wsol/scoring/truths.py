"""Truth boxes in the frame of a map, in the ways of the field's code.

They come as floats x0, y0, x1, y1 in pixels of the original image, x1 = x + width. The frame is the square
that the network saw: the image resized to R x R, less a margin m on the left and the top, S pixels wide; or
the original image itself (see `wsol.localization.extraction`). With W the width of the image, each rule does
the same to x and y:

- ``clipped``: x R / W - m, clipped to the frame's last pixel; x where the frame is the original image;
- ``whole pixels``: first truncated and clipped to the image's last pixel, then as before, truncated again
  (wsolevaluation);
- ``moved``: trunc(x (R / W) - m), not clipped (ADL);
- ``last pixel``: x0 and x1 - 1 in the original image, not clipped (DANet);
- ``whole sides``: x0 and x1 - x0 are truncated, then x / W R - m is clipped to 0 at the near end and to the
  frame's last pixel at the far end, and truncated (TS-CAM);
- ``cropped``: x (R / W) - m, clipped to 0 at the near end and to S at the far end (BAS, 2022);
- ``cropped pixels``: x / W R - m, clipped to 0 at the near end and to S - 1 at the far end, and truncated
  (BAS, 2023).

Multiplications are done in the order of the code, since truncation makes tiny differences visible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View
from wsol.localization.extraction import Size

Floats = NDArray[np.float64]
TruthRule = Literal[
    "clipped", "whole pixels", "moved", "last pixel", "whole sides", "cropped", "cropped pixels"
]
Framing = Callable[[Floats, View, Floats], Floats]


def frame_truths(rule: TruthRule, truths: ArrayLike, view: View, size: Size, original: bool) -> Floats:
    """(m, 4) truth boxes of an image of `size` (width, height) in the frame of its map.

    original: whether the frame is the original image.

    >>> from wsol.data.transforms import View
    >>> frame_truths("cropped pixels", [(16.5, 0, 300, 128)], View("crop", 224), (256, 256), False).tolist()
    [[0.0, 0.0, 223.0, 112.0]]
    """
    ends = np.array([*size, *size], dtype=np.float64)
    boxes = np.asarray(truths, dtype=np.float64).reshape(-1, 4)
    if rule == "clipped" and original:
        return np.minimum(np.clip(boxes, 0, ends), ends - 1)
    return _RULES[rule](boxes, view, ends)


def _clipped(boxes: Floats, view: View, ends: Floats) -> Floats:
    # Multiplied first, then divided: the other order rounds differently, and truncation would show it.
    return np.clip(np.clip(boxes, 0, ends) * view.resized / ends - view.margin, 0, view.side - 1)


def _whole_pixels(boxes: Floats, view: View, ends: Floats) -> Floats:
    return np.trunc(_clipped(np.minimum(np.trunc(np.clip(boxes, 0, ends)), ends - 1), view, ends))


def _moved(boxes: Floats, view: View, ends: Floats) -> Floats:
    return np.trunc(boxes * (view.resized / ends) - view.margin)


def _last_pixel(boxes: Floats, view: View, ends: Floats) -> Floats:
    return boxes - np.array([0.0, 0.0, 1.0, 1.0])


def _whole_sides(boxes: Floats, view: View, ends: Floats) -> Floats:
    near = np.trunc(boxes[:, :2])
    return _cropped_pixels(
        np.concatenate([near, near + np.trunc(boxes[:, 2:] - boxes[:, :2])], axis=1), view, ends
    )


def _cropped(boxes: Floats, view: View, ends: Floats) -> Floats:
    m, side = view.margin, view.side
    moved = boxes * (view.resized / ends)
    near, far = np.maximum(moved[:, :2], m), np.minimum(moved[:, 2:], m + side)
    return (np.concatenate([near, far], axis=1) - m) / side * side


def _cropped_pixels(boxes: Floats, view: View, ends: Floats) -> Floats:
    moved = boxes / ends * view.resized - view.margin
    near, far = np.maximum(moved[:, :2], 0), np.minimum(moved[:, 2:], view.side - 1)
    return np.trunc(np.concatenate([near, far], axis=1))


_RULES: dict[TruthRule, Framing] = {
    "clipped": _clipped,
    "whole pixels": _whole_pixels,
    "moved": _moved,
    "last pixel": _last_pixel,
    "whole sides": _whole_sides,
    "cropped": _cropped,
    "cropped pixels": _cropped_pixels,
}
