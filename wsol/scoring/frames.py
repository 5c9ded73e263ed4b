"""Where boxes are compared: the frame of a protocol's map, and the truth boxes in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View
from wsol.records import Box
from wsol.scoring.protocols import Protocol

Size = tuple[int, int]  # width, height


def frame_size(protocol: Protocol, view: View, size: Size) -> Size:
    """(width, height) of the protocol's score map of an image of `size`."""
    return (view.side, view.side) if protocol.recipe.frame == "input" else size


def truths_in_frame(protocol: Protocol, view: View, truths: ArrayLike, size: Size) -> NDArray[np.float64]:
    """Truth boxes (m, 4), floats in pixels of the original image of `size`, in the frame of the protocol.

    They are clipped to the image and to the frame. With `integer_truth` they are truncated before and after
    they are scaled, the ends clipped to the last pixel, as wsolevaluation has it.
    """
    ends = np.array([*size, *size], dtype=np.float64)
    boxes = np.clip(np.asarray(truths, dtype=np.float64).reshape(-1, 4), 0, ends)
    if protocol.integer_truth:
        boxes = np.minimum(np.trunc(boxes), ends - 1)
    if protocol.recipe.frame == "original":
        return np.minimum(boxes, ends - 1)
    # Multiplied first, then divided: the other order rounds differently, and truncation would show it.
    boxes = np.clip(boxes * view.resized / ends - view.margin, 0, view.side - 1)
    return np.trunc(boxes) if protocol.integer_truth else boxes


def empty_box(protocol: Protocol, frame: Size) -> NDArray[np.int64]:
    """The box that stands for an empty foreground."""
    whole = (0, 0, frame[0] - 1, frame[1] - 1)
    return np.array(whole if protocol.empty is None else protocol.empty, dtype=np.int64)


def to_original(protocol: Protocol, view: View, box: ArrayLike, size: Size) -> Box:
    """A box in the protocol's frame as a box in pixels of the original image, for drawings and exports.

    The far ends of a frame are its last pixels, so a box that reaches them is taken to reach the edge.
    """
    width, height = frame_size(protocol, view, size)
    x0, y0, x1, y1 = np.asarray(box, dtype=np.float64).tolist()
    framed = Box(x0, y0, width if x1 >= width - 1 else x1, height if y1 >= height - 1 else y1)
    return framed if protocol.recipe.frame == "original" else view.to_original(framed, size)
