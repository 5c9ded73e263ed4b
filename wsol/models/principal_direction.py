"""The direction in which the descriptors of some images vary most, and whether it shows a common object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsol.models.moments import Floats, Moments


@dataclass(frozen=True)
class PrincipalDirection:
    """The first principal direction u of descriptors x with mean m, so that p = u . (x - m) has mean 0.

    variance: of p. explained: its share of the variance of x in all directions. within: the share of the
    variance of p that lies inside images, not between their means. by_place: the share that the place alone
    explains: the variance of the map that is the mean of p over all images.
    """

    mean: Floats
    direction: Floats
    variance: float
    explained: float
    within: float
    by_place: float

    @classmethod
    def of(cls, moments: Moments) -> PrincipalDirection:
        """Where all descriptors are equal, the direction is zero and so is the map of every image."""
        covariance = moments.descriptors.covariance
        mean, total = moments.descriptors.mean, float(np.trace(covariance))
        # Rounding of equal descriptors is no variance.
        if total <= 1e-12 * max(1.0, float(mean @ mean)):
            return cls(mean, np.zeros_like(mean), 0.0, 0.0, 0.0, 0.0)
        values, vectors = np.linalg.eigh(covariance)
        direction, variance = vectors[:, -1], float(values[-1])
        places = (moments.places - mean) @ direction
        direction = direction * _sign(places, direction)
        between = float(direction @ moments.images.covariance @ direction)
        return cls(
            mean,
            direction,
            variance,
            explained=variance / total,
            within=1 - between / variance,
            by_place=float(places.var()) / variance,
        )

    def figures(self) -> dict[str, float]:
        """What the log of a run keeps."""
        return {"explained": self.explained, "within": self.within, "by_place": self.by_place}


def _sign(places: Floats, direction: Floats) -> float:
    """1 or -1: the sign with which the mean map (h, w) is larger inside than on its outermost cells.

    Maps of one or two cells on a side have no inside, and the two may be equal: then the largest entry of the
    direction decides, so that the answer is always the same.
    """
    inside = places[1:-1, 1:-1]
    border = (places.sum() - inside.sum()) / max(places.size - inside.size, 1)
    more = inside.mean() - border if inside.size else 0.0
    if more == 0:
        more = direction[np.argmax(np.abs(direction))]
    return 1.0 if more > 0 else -1.0
