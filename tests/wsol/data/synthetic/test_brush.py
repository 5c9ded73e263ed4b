"""The drawing tools against plain geometry."""

from __future__ import annotations

import numpy as np
import pytest

from wsol.data.synthetic.brush import (
    Frame,
    Layer,
    band,
    closed_curve,
    ellipse,
    noise,
    open_curve,
    over,
    soften,
)


def area(outline: np.ndarray) -> float:
    """Shoelace formula."""
    x, y = outline.T
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2


def test_curves_pass_their_points() -> None:
    points = np.array([(0.0, 0.0), (3.0, 1.0), (4.0, 5.0), (1.0, 4.0)])
    for curve in (open_curve(points), closed_curve(points)):
        gaps = np.linalg.norm(curve[:, None] - points, axis=2).min(axis=0)
        assert gaps.max() < 1e-9
    assert np.allclose(open_curve(points)[[0, -1]], points[[0, -1]])


def test_a_band_has_the_area_of_its_line_times_its_width() -> None:
    line = np.linspace((1.0, 2.0), (7.0, 10.0), 5)
    assert area(band(line, np.full(5, 0.5))) == pytest.approx(10 * 0.5)


def test_an_ellipse_is_turned_and_placed() -> None:
    outline = ellipse((5.0, 6.0), 3.0, 1.0, np.pi / 2)
    assert outline.mean(axis=0) == pytest.approx([5, 6])
    assert np.ptp(outline, axis=0) == pytest.approx([2, 6])


def test_frames_compose() -> None:
    world = Frame(np.diag([10.0, -10.0]), np.array([100.0, 50.0]))
    child = world.child((1.0, 2.0), np.pi / 2, 0.5)
    assert child([(1.0, 0.0)])[0] == pytest.approx([110.0, 25.0])
    assert child.scale == pytest.approx(5.0)


def test_a_filled_shape_covers_its_area_in_its_place() -> None:
    layer = Layer(40, 60)
    layer.fill(np.array([(10.0, 5.0), (50.0, 5.0), (50.0, 30.0), (10.0, 30.0)]), (200.0, 100.0, 50.0))
    paint, alpha = layer.finish()
    assert (alpha[5:30, 10:50] == 1).all()
    # OpenCV smooths an edge over about half a fine pixel outside the outline.
    assert 40 * 25 <= alpha.sum() <= 41 * 26
    assert alpha[4:31, 9:51].sum() == alpha.sum()
    assert paint[15, 30] == pytest.approx([200, 100, 50])
    assert over(np.zeros((40, 60, 3), np.float32), (paint, alpha))[15, 30] == pytest.approx([200, 100, 50])


def test_a_stain_only_colours_and_a_cover_also_paints() -> None:
    layer = Layer(20, 20)
    square = layer.area(np.array([(4.0, 4.0), (16.0, 4.0), (16.0, 16.0), (4.0, 16.0)]))
    layer.stain(square, (255.0, 0.0, 0.0))
    assert not layer.finish()[1].any()
    layer.cover(square, (0.0, 0.0, 200.0))
    layer.stain(square, (100.0, 0.0, 0.0), 0.5)
    paint, alpha = layer.finish()
    assert alpha[10, 10] == 1.0
    assert paint[10, 10] == pytest.approx([50, 0, 100], abs=1.5)


@pytest.mark.parametrize("sigma", [0.5, 3.0, 12.0])
def test_softening_keeps_the_mean(sigma: float) -> None:
    image = np.zeros((90, 90), np.float32)
    image[40:50, 40:50] = 1.0
    assert soften(image, sigma).mean() == pytest.approx(image.mean(), rel=0.12)
    assert soften(image, sigma).max() <= 1.0001


def test_noise_is_centred_and_seeded() -> None:
    field = noise(np.random.default_rng(0), 200, 300, (12, 12), 3)
    assert field.shape == (200, 300)
    assert abs(field.mean()) < 0.15
    assert 0.4 < field.std() < 1.6
    assert np.array_equal(field, noise(np.random.default_rng(0), 200, 300, (12, 12), 3))
