"""One bird: whatever its pose, it fits its place and its mask is what is painted."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsol.data.synthetic.anatomy import Action, Anatomy, place
from wsol.data.synthetic.birds import individual, paint_bird, strike_pose
from wsol.data.synthetic.families import FAMILIES
from wsol.data.synthetic.species import Species, roster

BIRDS = roster(42)
HABITS = sorted({(f.name, action) for f in FAMILIES for action, _ in f.habits})
LOW, HIGH = np.array([22.0, 15.0]), np.array([118.0, 96.0])
HEIGHT, WIDTH = 112, 150


def of(family: str) -> Species:
    return next(bird for bird in BIRDS if bird.family.name == family)


def painted(family: str, action: Action, seed: int) -> tuple[Anatomy, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    bird = place(of(family).family.shape, strike_pose(rng, action), LOW, HIGH)
    return bird, *paint_bird(rng, of(family), bird, HEIGHT, WIDTH)


@pytest.mark.parametrize(("family", "action"), HABITS)
def test_a_bird_fills_the_place_it_is_given(family: str, action: Action) -> None:
    for seed in range(3):
        _, paint, alpha = painted(family, action, seed)
        assert paint.shape == (HEIGHT, WIDTH, 3)
        assert alpha.shape == (HEIGHT, WIDTH, 1)
        x, y, w, h = cv2.boundingRect((alpha[..., 0] >= 0.5).astype(np.uint8))
        assert x >= LOW[0] - 2
        assert y >= LOW[1] - 2
        assert x + w <= HIGH[0] + 2
        assert y + h <= HIGH[1] + 2
        assert max(w / (HIGH - LOW)[0], h / (HIGH - LOW)[1]) > 0.9


@pytest.mark.parametrize(("family", "action"), HABITS)
def test_nothing_is_painted_outside_the_mask(family: str, action: Action) -> None:
    _, paint, alpha = painted(family, action, 1)
    assert alpha.min() == 0.0
    assert alpha.max() == 1.0
    assert (paint <= 255 * alpha + 1e-3).all()
    assert (paint >= 0).all()


@pytest.mark.parametrize(("family", "action"), [h for h in HABITS if h[1] in ("swim", "wade")])
def test_what_is_under_water_does_not_show(family: str, action: Action) -> None:
    bird, _, alpha = painted(family, action, 2)
    assert (alpha[int(np.ceil(bird.waterline)) + 1 :] == 0).all()
    assert alpha[int(bird.waterline) - 2].any()


def test_the_mask_is_in_one_piece_but_for_thin_legs() -> None:
    for family, action in HABITS:
        mask = (painted(family, action, 3)[2][..., 0] >= 0.5).astype(np.uint8)
        areas = np.sort(cv2.connectedComponentsWithStats(mask)[2][1:, cv2.CC_STAT_AREA])
        assert areas[-1] > 0.93 * areas.sum()


def test_a_mirrored_bird_is_the_mirror_image() -> None:
    rng = np.random.default_rng(5)
    pose = strike_pose(rng, "stand")
    shape = of("Jay").family.shape
    middle = np.array([WIDTH / 2, HEIGHT / 2])
    room = np.array([50.0, 40.0])
    masks = []
    for mirror in (False, True):
        bird = place(shape, type(pose)(**{**vars(pose), "mirror": mirror}), middle - room, middle + room)
        masks.append(paint_bird(np.random.default_rng(0), of("Jay"), bird, HEIGHT, WIDTH)[1])
    difference = np.abs(masks[0] - masks[1][:, ::-1])
    assert difference.mean() < 0.002


@given(st.integers(0, 2**32), st.sampled_from(FAMILIES))
@settings(deadline=None, max_examples=60)
def test_an_individual_stays_near_its_family(seed: int, family: object) -> None:
    plumage = next(f for f in FAMILIES if f is family).plumage
    worn = individual(np.random.default_rng(seed), plumage)
    for part in ("back", "belly", "head", "wing", "hand", "tail"):
        ours, theirs = np.array(getattr(worn, part)), np.array(getattr(plumage, part))
        assert (ours >= 0).all()
        assert (ours <= 255).all()
        assert np.abs(ours - theirs).max() <= 75
    assert (worn.legs, worn.iris, worn.pattern) == (plumage.legs, plumage.iris, plumage.pattern)
