"""The form of a bird: proportions of a family, the pose of one individual, and the outlines they give.

Everything is in body lengths, x towards the bill and y up; a `Frame` carries it into the picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from wsol.data.synthetic.brush import Frame, Points, band, closed_curve, ellipse, open_curve

Action: TypeAlias = Literal["stand", "wade", "swim", "fly", "cling"]


@dataclass(frozen=True)
class Shape:
    """Proportions that all species of a family share. Angles in degrees, the bill in head radii."""

    depth: float
    posture: float  # how far the body is raised at rest
    neck: float
    neck_angle: float
    head: float
    bill: tuple[float, float]  # length, depth at the base
    tail: tuple[float, float]  # length, width at the end
    wing: float
    legs: float
    bill_curve: float = 0.0  # how far the tip bends down
    bill_tip: float = 0.1  # thickness towards the tip, as a share of the base
    crest: float = 0.0
    tail_angle: float = 0.0
    tail_fork: float = 0.0  # notch in the tail's end (> 0), or a rounded end (< 0)
    span: float = 1.15


@dataclass(frozen=True)
class Pose:
    """How one bird holds itself. Angles in degrees."""

    action: Action
    mirror: bool
    tilt: float = 0.0
    neck: float = 0.0
    head: float = 0.0
    look_back: bool = False
    flap: float = 80.0


@dataclass(frozen=True)
class Wing:
    """A wing in pixels: its outline, the row edges where bars can sit, and the lines between feathers."""

    outline: Points
    hand: Points
    bars: tuple[Points, Points]
    feathers: tuple[Points, ...]
    shoulder: Points


@dataclass(frozen=True)
class Anatomy:
    """All outlines of one bird in pixels, for a shape, a pose and a place in the picture."""

    shape: Shape
    pose: Pose
    world: Frame

    @cached_property
    def body(self) -> Frame:
        raised = {"swim": 3.0, "fly": 4.0, "cling": 66.0}.get(self.pose.action, self.shape.posture)
        return self.world.child((0, 0), np.radians(raised + self.pose.tilt))

    @cached_property
    def shoulder(self) -> Points:
        return self.body([(0.33, 0.12 * self.shape.depth)])[0]

    @cached_property
    def neck_frame(self) -> Frame:
        """At the head's centre, always facing forwards."""
        lift = {"swim": 5.0, "fly": -30.0, "cling": 35.0}.get(self.pose.action, 0.0)
        angle = np.radians(self.shape.neck_angle + lift + self.pose.neck)
        start = self.world.child((0, 0))
        at = np.linalg.solve(start.matrix, self.shoulder - start.origin)
        reach = self.shape.neck * (0.8 if self.pose.action == "fly" else 1.0)
        at = at + reach * np.array([np.cos(angle), np.sin(angle)])
        pitch = np.radians(self.pose.head + (25.0 if self.pose.action == "cling" else 0.0))
        return self.world.child(at, pitch, self.shape.head)

    @cached_property
    def head(self) -> Frame:
        """In head radii, x along the bill: turned round when the bird looks over its shoulder."""
        if not self.pose.look_back:
            return self.neck_frame
        return Frame(self.neck_frame.matrix @ np.diag([-1.0, 1.0]), self.neck_frame.origin)

    def trunk(self) -> tuple[Points, Points, Points]:
        """Body, neck and head; the painter melts them into one."""
        d = self.shape.depth
        body = self.body(
            closed_curve(
                [
                    (0.49, 0.04),
                    (0.39, 0.33 * d),
                    (0.14, 0.48 * d),
                    (-0.16, 0.41 * d),
                    (-0.43, 0.20 * d),
                    (-0.62, 0.05),
                    (-0.60, -0.05),
                    (-0.37, -0.30 * d),
                    (-0.07, -0.52 * d),
                    (0.24, -0.50 * d),
                    (0.44, -0.27 * d),
                ]
            )
        )
        r = self.shape.head * self.world.scale
        head = self.neck_frame(ellipse((0, 0), 1.06, 0.98))
        start, end = self.body([(0.22, 0.0)])[0], self.neck_frame.origin
        sway = (end - start)[::-1] * (1, -1) * 0.26 * self.shape.neck  # a long neck is an S
        sway = sway * np.sign(self.world.matrix[0, 0])
        line = open_curve(
            [start, start * 0.68 + end * 0.32 - sway, start * 0.28 + end * 0.72 + sway * 0.7, end]
        )
        thick = min(0.72 * self.shape.depth * self.world.scale, 3.0 * r)
        taper = np.linspace(0, 1, len(line)) ** (0.5 if self.shape.neck > 0.5 else 1.0)
        neck = band(line, thick + (1.3 * r - thick) * taper)
        return body, neck, head

    def belly(self) -> Points:
        d = self.shape.depth
        return self.body(
            closed_curve(
                [
                    (0.62, -0.10),
                    (0.40, 0.04 * d),
                    (0.05, -0.16 * d),
                    (-0.35, -0.10 * d),
                    (-0.75, -0.02),
                    (-0.5, -0.60 * d),
                    (0.0, -0.75 * d),
                    (0.4, -0.62 * d),
                ]
            )
        )

    def tail(self) -> tuple[Points, list[Points]]:
        """The outline and the lines between its feathers."""
        length, width = self.shape.tail
        if self.pose.action == "fly":
            width *= 1.6
        angle = self.shape.tail_angle * (0.2 if self.pose.action == "fly" else 1.0)
        at = self.body.child((-0.52, 0.01), np.radians(180.0 - angle))
        notch = length * (1 - self.shape.tail_fork)
        low, high = 0.055, -0.055
        ends = [(length, 0.5 * width), (notch, 0.0), (length, -0.5 * width)]
        if self.shape.tail_fork < 0:
            ends = [
                (length * 0.93, 0.5 * width),
                (length, 0.25 * width),
                (length, -0.25 * width),
                (length * 0.93, -0.5 * width),
            ]
        outline = at([(-0.12, low), (0.3 * length, low + 0.1 * width), *ends])
        outline = np.concatenate([outline, at([(0.3 * length, high - 0.1 * width), (-0.12, high)])])
        lines = [at([(0.1, 0.3 * y), (0.9 * notch, y)]) for y in np.linspace(-0.3, 0.3, 4) * width]
        return outline, lines

    def folded_wing(self) -> Wing:
        d, tip = self.shape.depth, (0.30 - self.shape.wing, 0.02)
        outline = closed_curve(
            [
                (0.31, 0.04),
                (0.22, 0.29 * d),
                (0.00, 0.38 * d),
                (-0.25, 0.29 * d),
                (-0.45, 0.16 * d),
                tip,
                (-0.33, -0.10 * d),
                (-0.05, -0.25 * d),
                (0.20, -0.21 * d),
            ]
        )
        hand = [(-0.06, 0.34 * d), (-0.12, 0.0), (-0.03, -0.28 * d), (-0.4, -0.2 * d)]
        bars = (
            [(0.14, 0.38 * d), (0.10, 0.08 * d), (0.16, -0.25 * d)],
            [(-0.04, 0.42 * d), (-0.10, 0.06 * d), (-0.01, -0.27 * d)],
        )
        feathers = []
        for i in range(6):
            start = (-0.13 + 0.02 * i, (0.27 - 0.09 * i) * d)
            end = np.array(tip) * (1 - i / 6) + np.array([-0.18, -0.22 * d]) * (i / 6)
            middle = (np.array(start) + end) / 2 + (0, 0.02)
            feathers.append(self.body(open_curve([start, middle, end])))
        hand_outline = np.array([*hand, (tip[0] - 0.1, -0.1), (tip[0] - 0.1, 0.2), (-0.3, 0.4 * d)])
        return Wing(
            self.body(outline),
            self.body(hand_outline),
            (self.body(open_curve(bars[0])), self.body(open_curve(bars[1]))),
            tuple(feathers),
            self.body([(0.30, 0.06)])[0],
        )

    def spread_wing(self, flap: float, root: float = 0.1) -> Wing:
        """A wing in flight; `flap` is the angle between its arm and the body, 90 straight up."""
        frame = self.body.child((root, 0.10 * self.shape.depth), np.radians(flap))
        frame = Frame(frame.matrix @ np.diag([self.shape.span, -np.sign(flap)]), frame.origin)
        leading = open_curve([(-0.05, 0.20), (0.2, 0.25), (0.44, 0.29), (0.75, 0.14), (1.0, -0.14)])
        trailing = open_curve([(1.0, -0.14), (0.82, -0.27), (0.5, -0.31), (0.2, -0.35), (-0.05, -0.28)])
        tips = trailing[:: max(1, len(trailing) // 10)]
        notches = (tips[:-1] + tips[1:]) / 2 + (-0.01, 0.028)
        edge = np.empty((2 * len(tips) - 1, 2))
        edge[::2], edge[1::2] = tips, notches
        roots = np.linspace((0.86, 0.06), (-0.02, 0.0), len(notches))
        bars = (
            [(0.0, 0.10), (0.3, 0.14), (0.55, 0.15), (0.80, 0.06)],
            [(0.0, -0.04), (0.3, -0.02), (0.6, 0.0), (0.86, -0.05)],
        )
        hand = np.concatenate([roots, [(-0.1, -0.5), (0.6, -0.6), (1.2, -0.3), (1.1, 0.0)]])
        return Wing(
            frame(np.concatenate([leading, edge])),
            frame(hand),
            (frame(open_curve(bars[0])), frame(open_curve(bars[1]))),
            tuple(frame(np.stack([a, b])) for a, b in zip(roots, notches, strict=True)),
            frame.origin,
        )

    def wings(self) -> tuple[Wing | None, Wing]:
        """The far wing, which only shows in flight, and the near one."""
        if self.pose.action != "fly":
            return None, self.folded_wing()
        far = self.spread_wing(abs(self.pose.flap) - 26.0, 0.16)
        return far, self.spread_wing(self.pose.flap)

    def beak(self) -> tuple[Points, Points]:
        """Upper and lower half of the bill."""
        length, depth = self.shape.bill
        curve, blunt = self.shape.bill_curve, self.shape.bill_tip
        x0, x1 = 0.72, 0.85 + length
        half, end = depth / 2, -0.10 - curve
        upper = [
            (x0, half + 0.02),
            (x0 + 0.38 * length, 0.66 * half - 0.02 - 0.15 * curve),
            (x0 + 0.75 * length, max(blunt, 0.3) * half * 0.9 - 0.06 - 0.35 * curve),
            (x1, end + blunt * half * 0.5),
            (x1 - 0.02, end - blunt * half * 0.4),
            (x0 + 0.6 * length, -0.12 - 0.4 * curve),
            (x0, -0.10),
        ]
        lower = [
            (x0, -0.08),
            (x0 + 0.6 * length, -0.10 - 0.4 * curve),
            (x1 - 0.12 * length, end + 0.02),
            (x1 - 0.18 * length, end - blunt * half * 0.6),
            (x0 + 0.35 * length, -0.12 - 0.5 * half - 0.2 * curve),
            (x0, -0.10 - 0.62 * half),
        ]
        return self.head(upper), self.head(lower)

    def crest(self) -> Points:
        c = self.shape.crest
        return self.head(
            [
                (0.60, 0.70),
                (0.25, 0.92 + 0.25 * c),
                (-0.35, 0.95 + 0.55 * c),
                (-0.95 - 0.7 * c, 0.80 + 0.75 * c),
                (-0.90 - 0.15 * c, 0.50 + 0.15 * c),
                (-0.95, 0.0),
            ]
        )

    @cached_property
    def feet(self) -> Points:
        """(2, 2): where the near and the far foot stand."""
        d = self.shape.depth
        if self.pose.action == "cling":
            return self.body([(0.13, -0.5 * d - 0.10), (-0.13, -0.5 * d - 0.10)])
        hips = self.body([(0.0, -0.3 * d), (-0.02, -0.3 * d)])
        unit = self.world.scale
        drop = (0.22 * d + self.shape.legs) * unit
        forward = np.sign(self.world.matrix[0, 0]) * unit
        return hips + np.array([[0.07 * forward, drop], [-0.10 * forward, drop - 0.015 * unit]])

    def legs(self) -> list[Points]:
        """Far leg first: hip, heel and toe as a line."""
        d = self.shape.depth
        hips = self.body([(0.02, -0.3 * d), (-0.06, -0.3 * d)])
        back = -np.sign(self.world.matrix[0, 0]) * self.world.scale
        lines = []
        for hip, foot in list(zip(hips, self.feet, strict=True))[::-1]:
            heel = (hip + foot) / 2 + (0.14 * self.shape.legs * back, 0)
            lines.append(np.stack([hip, heel, foot]))
        return lines

    def toes(self) -> list[Points]:
        """Short lines on the perch, three to a foot."""
        if self.pose.action == "cling":
            length = 0.09 * self.world.scale
            towards = self.body([(0.0, -1.0)])[0] - self.body.origin
            along = self.body([(1.0, 0.0)])[0] - self.body.origin
            rays = [0.5 * towards + along, towards + 0.4 * along, 0.6 * towards - 0.6 * along]
            return [np.stack([f, f + length * r / np.linalg.norm(r)]) for f in self.feet for r in rays]
        unit = (0.05 + 0.13 * self.shape.legs) * self.world.scale
        forward = np.sign(self.world.matrix[0, 0])
        rays = [np.array(r) * (forward, 1) * unit for r in ((1.0, 0.18), (0.6, 0.38), (-0.6, 0.2))]
        return [np.stack([foot, foot + ray]) for foot in self.feet for ray in rays]

    @cached_property
    def waterline(self) -> float:
        """The height in the picture down to which a bird in the water shows."""
        if self.pose.action == "wade":
            return float(self.feet[:, 1].min() - 0.3 * self.shape.legs * self.world.scale)
        return float(self.body.origin[1] + 0.30 * self.shape.depth * self.world.scale)

    def extent(self) -> tuple[Points, Points]:
        """Upper left and lower right corner around all that shows."""
        points = np.concatenate(list(self._outlines()))
        low, high = points.min(0), points.max(0)
        if self.pose.action in ("swim", "wade"):
            high[1] = self.waterline
        return low, high

    def _outlines(self) -> Iterator[Points]:
        yield from self.trunk()
        yield from self.beak()
        yield self.tail()[0]
        yield from (wing.outline for wing in self.wings() if wing)
        if self.shape.crest:
            yield self.crest()
        if self.pose.action in ("stand", "cling"):
            yield from self.toes()


def place(shape: Shape, pose: Pose, low: Points, high: Points) -> Anatomy:
    """The bird as large as it fits into the rectangle from `low` to `high`, in its middle."""
    flip = np.array([-1.0 if pose.mirror else 1.0, -1.0])
    unit = Anatomy(shape, pose, Frame(np.diag(flip), np.zeros(2)))
    first, last = unit.extent()
    scale = float(((high - low) / (last - first)).min())
    centre = (low + high) / 2 - scale * (first + last) / 2
    return Anatomy(shape, pose, Frame(np.diag(flip * scale), centre))
