"""Drawing tools of the synthetic painter: smooth curves, a sharp layer of paint, soft light and noise.

Points are (N, 2) float arrays, x right and y down in pixels of the picture. Colours are RGB, 0 to 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np

Colour: TypeAlias = tuple[float, float, float]
Points: TypeAlias = np.ndarray

OVERSAMPLE = 2  # a layer is painted this many times finer than the picture and then averaged
_SHIFT = 4  # fractional bits of the coordinates that OpenCV draws at


def mix(a: Colour, b: Colour, t: float) -> Colour:
    """The colour at share `t` of the way from a to b."""
    return (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t)


def lit(colour: Colour, factor: float) -> Colour:
    """The colour under more (> 1) or less (< 1) light, kept within the paintable range."""
    r, g, b = colour
    return (
        min(max(r * factor, 0.0), 255.0),
        min(max(g * factor, 0.0), 255.0),
        min(max(b * factor, 0.0), 255.0),
    )


def distance(a: Colour, b: Colour) -> float:
    """How far two colours are apart, in RGB."""
    return float(np.linalg.norm(np.subtract(a, b)))


def _weights(steps: int) -> np.ndarray:
    """(steps, 4): Catmull-Rom weights of four neighbouring control points."""
    t = np.arange(steps)[:, None] / steps
    powers = np.concatenate([np.ones_like(t), t, t**2, t**3], axis=1)
    basis = np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]]) / 2
    return powers @ basis


_WEIGHTS = _weights(6)


def closed_curve(points: Sequence[Sequence[float] | Points] | Points) -> Points:
    """A smooth closed outline through all points (Catmull-Rom)."""
    p = np.asarray(points, dtype=np.float64)
    around = np.stack([np.roll(p, 1, 0), p, np.roll(p, -1, 0), np.roll(p, -2, 0)], axis=1)
    return np.einsum("sk,nkd->nsd", _WEIGHTS, around).reshape(-1, 2)


def open_curve(points: Sequence[Sequence[float] | Points] | Points) -> Points:
    """A smooth line through all points, from the first to the last (Catmull-Rom)."""
    p = np.asarray(points, dtype=np.float64)
    p = np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    around = np.stack([p[:-3], p[1:-2], p[2:-1], p[3:]], axis=1)
    return np.concatenate([np.einsum("sk,nkd->nsd", _WEIGHTS, around).reshape(-1, 2), p[-2:-1]])


def band(line: Points, widths: Sequence[float] | Points) -> Points:
    """The outline of a line that has a width at each of its points: a branch, a leg, a neck."""
    steps = line[1:] - line[:-1]
    along = np.concatenate([steps[:1], steps[:-1] + steps[1:], steps[-1:]])
    length = np.sqrt(along[:, 0] ** 2 + along[:, 1] ** 2)
    half = np.asarray(widths, dtype=np.float64) / np.maximum(length, 1e-9) / 2
    offset = np.empty_like(line)
    offset[:, 0], offset[:, 1] = -along[:, 1] * half, along[:, 0] * half
    return np.concatenate([line + offset, (line - offset)[::-1]])


def ellipse(centre: Sequence[float] | Points, rx: float, ry: float, angle: float = 0.0) -> Points:
    """An ellipse as an outline; the angle in radians."""
    c, s = np.cos(angle), np.sin(angle)
    return _CIRCLE @ np.array([(rx * c, rx * s), (-ry * s, ry * c)]) + centre


_TURN = np.linspace(0, 2 * np.pi, 28, endpoint=False)
_CIRCLE = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=1)


@dataclass(frozen=True)
class Frame:
    """A coordinate system inside another: p -> matrix p + origin."""

    matrix: np.ndarray
    origin: np.ndarray

    def __call__(self, points: Sequence[Sequence[float] | Points] | Points) -> Points:
        return np.asarray(points, dtype=np.float64) @ self.matrix.T + self.origin

    def child(self, at: Sequence[float] | Points, angle: float = 0.0, scale: float = 1.0) -> Frame:
        """A frame whose origin lies `at` in this one, turned by `angle` (radians) and scaled."""
        c, s = np.cos(angle) * scale, np.sin(angle) * scale
        return Frame(self.matrix @ np.array([[c, -s], [s, c]]), self([at])[0])

    @property
    def scale(self) -> float:
        """Pixels to a unit of this frame."""
        return float(np.hypot(*self.matrix[:, 0]))


class Layer:
    """A sheet of opaque paint, finer than the picture; where nothing is painted it is clear."""

    def __init__(self, height: int, width: int) -> None:
        self.rgba = np.zeros((height * OVERSAMPLE, width * OVERSAMPLE, 4), np.uint8)

    def fill(self, outline: Points, colour: Colour) -> None:
        """Cover the inside of an outline."""
        cv2.fillPoly(self.rgba, [_fixed(outline)], (*colour, 255), cv2.LINE_AA, _SHIFT)

    def stroke(self, line: Points, colour: Colour, width: float = 0.0) -> None:
        """Draw along a line; never thinner than one fine pixel."""
        thickness = max(1, round(width * OVERSAMPLE))
        cv2.polylines(self.rgba, [_fixed(line)], False, (*colour, 255), thickness, cv2.LINE_AA, _SHIFT)

    def area(self, *outlines: Points, soft: float = 0.0) -> np.ndarray:
        """A fine uint8 mask, 255 inside any of the outlines, its edge softened over `soft` pixels."""
        height, width = self.rgba.shape[:2]
        # A soft edge has no detail to keep, so it is made at the picture's size and then enlarged.
        fine = 1 if soft > 1 else OVERSAMPLE
        mask = np.zeros((height // OVERSAMPLE * fine, width // OVERSAMPLE * fine), np.uint8)
        for outline in outlines:
            cv2.fillPoly(mask, [_fixed(outline, fine)], 255, cv2.LINE_AA, _SHIFT)
        if soft:
            mask = soften(mask, soft * fine)
        return mask if fine == OVERSAMPLE else cv2.resize(mask, (width, height))

    def stain(self, area: np.ndarray, colour: Colour, strength: float = 1.0) -> None:
        """Mix a colour into what is painted already, by the weight of a mask."""
        self._mix(area, np.array(colour, np.float32), strength)

    def cover(self, area: np.ndarray, colour: Colour) -> None:
        """Paint a mask in one colour, opaque."""
        self._mix(area, np.array((*colour, 255), np.float32), 1.0)

    def _mix(self, area: np.ndarray, channels: np.ndarray, strength: float) -> None:
        x, y, w, h = cv2.boundingRect(area)
        if w:
            part = self.rgba[y : y + h, x : x + w, : len(channels)]
            weight = area[y : y + h, x : x + w, None] * np.float32(strength / 255)
            part[...] = part + (channels - part) * weight + np.float32(0.5)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """The layer at the picture's size: colour times alpha (H, W, 3), and alpha (H, W, 1), from 0 to 1."""
        h, w = self.rgba.shape[0] // OVERSAMPLE, self.rgba.shape[1] // OVERSAMPLE
        small = cv2.resize(self.rgba, (w, h), interpolation=cv2.INTER_AREA).astype(np.float32)
        return small[..., :3], small[..., 3:] / 255


def _fixed(points: Points, fine: int = OVERSAMPLE) -> np.ndarray:
    """Coordinates as OpenCV's fixed-point integers, which count from the centre of the first pixel."""
    return np.rint((points * fine - 0.5) * 2**_SHIFT).astype(np.int32)


def over(picture: np.ndarray, layer: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The picture with a finished layer laid over it."""
    paint, alpha = layer
    return picture * (1 - alpha) + paint


def soften(image: np.ndarray, sigma: float) -> np.ndarray:
    """Blur an image of any depth; a wide blur is done on a smaller copy, which looks the same."""
    step = max(1, int(sigma / 1.2))
    if step == 1:
        return cv2.GaussianBlur(image, (0, 0), max(sigma, 0.3))
    h, w = image.shape[:2]
    small = cv2.resize(image, (max(2, w // step), max(2, h // step)), interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma / step)
    return cv2.resize(small, (w, h), interpolation=cv2.INTER_LINEAR)


def noise(
    rng: np.random.Generator, height: int, width: int, cell: tuple[float, float], octaves: int = 1
) -> np.ndarray:
    """(H, W) smooth random field of about unit spread; `cell` is the size (x, y) of its coarsest blobs."""
    field = np.zeros((height, width), np.float32)
    for octave in range(octaves):
        rows = int(height * 2**octave / cell[1]) + 3
        cols = int(width * 2**octave / cell[0]) + 3
        grid = rng.standard_normal((rows, cols), np.float32)
        field += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * 0.5**octave
    return field * 1.2
