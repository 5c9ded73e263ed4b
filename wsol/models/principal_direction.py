"""The direction in which descriptors of images vary most, and whether it can show a common object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsol.models.moments import Floats, Moments

# Our choices; docs/discover.md has the shares of birds, painted birds and noise.
MOST_BY_PLACE = 0.5
LEAST_WITHIN = 0.5
MOST_COVERED = 0.45
ROUNDING = 1e-12  # a variance below this part of the mean's square is that of equal numbers


@dataclass(frozen=True)
class PrincipalDirection:
    """The first principal direction u of descriptors x with mean m, so that p = u . (x - m) has mean 0.

    The parts of the variance of p say what it shows:

    explained: its share of the variance of x in all directions.
    within: the share that lies inside images. The rest lies between the means of images: pictures of one
        colour each differ from each other, and nothing in them differs from the rest of its picture.
    by_place: the share that the place in the picture alone explains, whatever the picture. An object is now
        here, now there; what noise has in common is the edge of the picture, where a network pads with zeros.
        From n images it is estimated as (n b - 1) / (n - 1), where b is the share of the variance of the
        mean map: without it, few images would seem to agree by chance.
    """

    mean: Floats
    direction: Floats
    variance: float
    explained: float
    within: float
    by_place: float
    num_images: int

    @classmethod
    def of(cls, moments: Moments) -> PrincipalDirection:
        """Where all descriptors are equal, the direction is zero and so is the map of every image."""
        covariance, number = moments.descriptors.covariance, moments.images.number
        mean, total = moments.descriptors.mean, float(np.trace(covariance))
        if total <= ROUNDING * max(float(mean @ mean), ROUNDING):
            return cls(mean, np.zeros_like(mean), 0.0, 0.0, 0.0, 0.0, number)
        values, vectors = np.linalg.eigh(covariance)
        direction, variance = vectors[:, -1], float(values[-1])
        places = (moments.places - mean) @ direction
        direction = direction * _sign(places, direction)
        between = float(direction @ moments.images.covariance @ direction) / variance
        mean_map = float(places.var()) / variance
        return cls(
            mean,
            direction,
            variance,
            explained=variance / total,
            within=1 - between,
            by_place=max((number * mean_map - 1) / (number - 1), 0.0) if number > 1 else mean_map,
            num_images=number,
        )

    def no_common_object(self, covered: float) -> str | None:
        """Why these images show no common object, in words; None where nothing speaks against one.

        covered: the share of all places of all images where p > 0. An object is the smaller part of its
        photos; where about half of everything is above 0, or more, nothing stands out from the rest.
        """
        if self.num_images < 2:
            return "there is one photo, and at least 2 are needed"
        if self.variance == 0:
            return "the features are the same everywhere in all photos"
        if self.within < LEAST_WITHIN:
            return f"only {self.within:.0%} of the differences are between places of one photo"
        if self.by_place > MOST_BY_PLACE:
            return (
                f"{self.by_place:.0%} of the differences depend on the place in the photo alone, and not on "
                "what is there, as in noise or photos of one colour"
            )
        if covered > MOST_COVERED:
            return f"it would cover {covered:.0%} of the photos, so it does not stand out from the rest"
        return None

    def figures(self) -> dict[str, float]:
        """The shares, for logs and files."""
        return {"explained": self.explained, "within": self.within, "by_place": self.by_place}


def _sign(places: Floats, direction: Floats) -> float:
    """1 or -1: the sign with which the mean map (h, w) is larger inside than on its outermost cells.

    A map of one or two cells on a side has no inside, and the two may be equal: then the largest entry of the
    direction decides, so that the answer is always the same.
    """
    inside = places[1:-1, 1:-1]
    more = 0.0
    if inside.size:
        border = (places.sum() - inside.sum()) / (places.size - inside.size)
        more = float(inside.mean() - border)
    if more == 0:
        more = float(direction[np.argmax(np.abs(direction))])
    return 1.0 if more > 0 else -1.0
