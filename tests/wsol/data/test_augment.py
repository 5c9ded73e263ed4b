"""Training augmentation: right pixels, seeded by (seed, epoch, index), draws independent of each other."""

from __future__ import annotations

import os

import albumentations as A
import numpy as np
from PIL import Image

from wsol.data.augment import CropFlip

SIDE = 32
# Red is the column and green the row of a 40 x 40 image, so that a crop tells where it came from.
RESIZED = 40
COORDINATES = np.stack([*np.meshgrid(np.arange(40), np.arange(40)), np.zeros((40, 40))], -1).astype(np.uint8)


def draw(augment: CropFlip, key: tuple[int, int]) -> tuple[int, int, bool]:
    """(left, top, flipped) of one draw, checked to be a crop of the image."""
    image = augment(Image.fromarray(COORDINATES), key)
    assert image.shape == (SIDE, SIDE, 3)
    assert image.dtype == np.uint8
    flipped = bool(image[0, 0, 0] > image[0, -1, 0])
    upright = image[:, ::-1] if flipped else image
    left, top = int(upright[0, 0, 0]), int(upright[0, 0, 1])
    np.testing.assert_array_equal(upright, COORDINATES[top : top + SIDE, left : left + SIDE])
    return left, top, flipped


def test_the_network_is_not_asked_for_a_newer_version() -> None:
    assert os.environ["NO_ALBUMENTATIONS_UPDATE"] == "1"


def test_a_draw_depends_on_seed_epoch_and_index_alone() -> None:
    one, two = CropFlip(RESIZED, SIDE, seed=3), CropFlip(RESIZED, SIDE, seed=3)
    keys = [(epoch, index) for epoch in range(3) for index in range(10)]
    forward = {key: draw(one, key) for key in keys}
    backward = {key: draw(two, key) for key in reversed(keys)}
    assert forward == backward
    other = {key: draw(CropFlip(RESIZED, SIDE, seed=4), key) for key in keys}
    assert sum(forward[k] != other[k] for k in keys) > 20
    assert sum(forward[0, i] != forward[1, i] for i in range(10)) > 5


def test_crop_and_flip_are_uniform_and_independent() -> None:
    augment = CropFlip(RESIZED, SIDE, seed=0)
    draws = np.array([draw(augment, (0, i)) for i in range(2000)], dtype=float)
    assert set(draws[:, 0]) == set(draws[:, 1]) == set(range(9))  # 40 - 32 + 1 places
    assert abs(draws[:, 2].mean() - 0.5) < 0.06
    assert np.all(np.abs(draws[:, :2].mean(0) - 4) < 0.3)
    correlation = np.corrcoef(draws.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(correlation) < 0.1)


def test_the_images_are_those_of_a_pipeline_after_the_resize() -> None:
    """Of albumentations' own composition, seeded alike, on the whole resized image."""
    crop, flip = A.RandomCrop(SIDE, SIDE), A.HorizontalFlip(p=0.5)
    pipeline = A.Compose([crop, flip])
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8))
    for resized in (RESIZED, 64):
        augment = CropFlip(resized, SIDE, seed=7)
        whole = np.asarray(photo.resize((resized, resized), Image.Resampling.BILINEAR))
        for index in range(40):
            seeds = np.random.SeedSequence((7, 2, index)).generate_state(2).tolist()
            crop.set_random_seed(seeds[0])
            flip.set_random_seed(seeds[1])
            np.testing.assert_array_equal(augment(photo, (2, index)), pipeline(image=whole)["image"])


def test_a_border_is_black_and_the_crop_may_reach_into_it() -> None:
    """Pad by hand, crop and flip by hand, at the drawn place: the same pixels."""
    pixels = np.random.default_rng(0).integers(1, 256, (8, 8, 3), dtype=np.uint8)
    augment = CropFlip(8, 8, seed=3, pad=4)
    places = set()
    for index in range(200):
        left, top, flipped, _ = augment.draw((0, index))
        by_hand = np.zeros((8, 8, 3), np.uint8)
        for y in range(8):
            for x in range(8):
                row, column = y + top - 4, x + left - 4
                if 0 <= row < 8 and 0 <= column < 8:
                    by_hand[y, 7 - x if flipped else x] = pixels[row, column]
        assert np.array_equal(augment(Image.fromarray(pixels), (0, index)), by_hand)
        places.add((left, top))
    assert {left for left, _ in places} == {top for _, top in places} == set(range(9))


def test_both_flips_up_and_down_too_and_leaves_the_other_draws_as_they_are() -> None:
    plain, both = CropFlip(RESIZED, SIDE, seed=3), CropFlip(RESIZED, SIDE, seed=3, flip="both")
    image = Image.fromarray(COORDINATES)
    turned = []
    for index in range(400):
        shown, expected = both(image, (0, index)), plain(image, (0, index))
        turned.append(bool(shown[0, 0, 1] > shown[-1, 0, 1]))
        np.testing.assert_array_equal(shown, expected[::-1] if turned[-1] else expected)
        np.testing.assert_array_equal(both.cut_out(COORDINATES, (0, index)), shown)
    assert abs(np.mean(turned) - 0.5) < 0.1
