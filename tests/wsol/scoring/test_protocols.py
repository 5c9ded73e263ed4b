"""Each protocol by hand: the same map, and the box that each of them draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.errors import ConfigError
from wsol.registry import PROTOCOLS
from wsol.scoring.image import ImageScorer
from wsol.scoring.judge import Judge
from wsol.scoring.protocols import Protocol, describe_protocols, find_protocols

NAMES = ["gpca", "wsoleval-v1", "wsoleval-v2", "adl", "danet", "tscam", "bas", "bas-ext"]
SIDE = 32
WHOLE = (0, 0, 31, 31)


def box_of(name: str, score_map: NDArray[np.float64], threshold: float | None = None) -> tuple[int, ...]:
    """The single box that a protocol draws at its fixed threshold, on an image of the map's own size."""
    protocol = PROTOCOLS.create(name)
    scorer = ImageScorer(score_map, (), (SIDE, SIDE), View(protocol.view, SIDE))
    found = scorer.find(protocol, np.array([protocol.extraction.fixed if threshold is None else threshold]))
    return tuple(found.boxes[0].tolist())


def canvas() -> NDArray[np.float64]:
    return np.zeros((SIDE, SIDE))


def test_all_are_registered() -> None:
    assert list(PROTOCOLS.entries()) == [*NAMES, "classes", "classes-crop"]
    assert [p.name for p in find_protocols(["all"])] == NAMES
    assert sorted(p.name for p in find_protocols(["bas", "all", "bas"])) == sorted(NAMES)
    with pytest.raises(ConfigError, match="unknown protocol 'wsoleval'"):
        find_protocols(["wsoleval"])
    with pytest.raises(ConfigError, match=r"unknown normalization 'min-max'.*minmax"):
        find_protocols(["gpca"], "min-max")


def test_the_table_names_every_protocol_and_how_they_differ() -> None:
    head, *rows = describe_protocols()
    assert head[1:] == NAMES
    assert len(rows) == len({row[0] for row in rows}) >= 10
    assert all(len(row) == len(head) for row in rows)
    columns = {
        p.name: tuple(getattr(p, f) for f in Protocol.__dataclass_fields__ if f not in ("name", "summary"))
        for p in find_protocols(["all"])
    }
    assert len(set(columns.values())) == len(NAMES), "no two protocols are the same"


def test_thresholds() -> None:
    """A square of 1 in ever fainter frames: how far each protocol goes."""
    graded = canvas()
    for margin, value in ((4, 0.05), (6, 0.11), (8, 0.16), (10, 0.201), (12, 1.0)):
        graded[margin : SIDE - margin, margin : SIDE - margin] = value

    def square(margin: int) -> tuple[int, ...]:
        return (margin, margin, SIDE - margin, SIDE - margin)

    assert box_of("gpca", graded) == square(10)  # 0.201 > 0.2
    assert box_of("wsoleval-v1", graded) == square(12)  # int(255 * 0.201) = 51 is not > int(0.2 * 255) = 51
    assert box_of("wsoleval-v2", graded) == square(12)
    assert box_of("adl", graded) == square(12)  # 0.2 of the largest grey begins at 0.2031
    assert box_of("danet", graded) == (10, 10, SIDE - 11, SIDE - 11)  # the last pixels
    assert box_of("tscam", graded) == square(6)  # int(255 * 0.11) = 28 > int(0.1 * 255) = 25
    assert box_of("bas", graded) == square(8)  # 0.16 > 0.15
    assert box_of("bas-ext", graded) == square(6)  # 0.11 > 0.1


def test_danet_takes_the_threshold_itself_as_foreground() -> None:
    """A value of exactly 0.2: `>= 0.2` for danet, `> 0.2` for the others with that threshold."""
    exact = canvas()
    exact[4:28, 4:28] = 0.2
    exact[12:20, 12:20] = 1
    assert box_of("danet", exact) == (4, 4, 27, 27)
    assert box_of("gpca", exact) == box_of("adl", exact) == (12, 12, 20, 20)


def test_largest_component_and_largest_contour() -> None:
    """A thin ring encloses more (contour area 81) but has fewer pixels (36) than the solid square (49)."""
    both = canvas()
    both[2:12, 2:12] = 1
    both[3:11, 3:11] = 0
    both[20:27, 20:27] = 1
    ring, square, around_all = (2, 2, 12, 12), (20, 20, 27, 27), (2, 2, 26, 26)
    assert box_of("gpca", both) == box_of("bas", both) == box_of("bas-ext", both) == square
    for name in ("wsoleval-v1", "wsoleval-v2", "adl", "tscam"):
        assert box_of(name, both) == ring
    assert box_of("danet", both) == around_all


@pytest.mark.parametrize("raw", [canvas(), canvas() + 0.5, canvas() - 3, canvas() * np.nan])
def test_no_foreground(raw: NDArray[np.float64]) -> None:
    """A constant map and a map of NaN: each protocol's own box."""
    assert box_of("gpca", raw) == WHOLE
    for name in ("bas", "bas-ext"):
        assert box_of(name, raw) == (0, 0, SIDE, SIDE)
    for name in ("wsoleval-v1", "wsoleval-v2", "danet"):
        assert box_of(name, raw) == (0, 0, 0, 0)
    for name in ("adl", "tscam"):
        assert box_of(name, raw) == (0, 0, 1, 1)


def test_a_constant_map_that_is_scored_as_it_is() -> None:
    """wsoleval has no rule for it, so all of it is foreground; the others' own no-foreground box."""
    for name, expected in (
        ("wsoleval-v1", WHOLE),
        ("adl", (0, 0, 1, 1)),
        ("danet", (0, 0, 0, 0)),
        ("gpca", WHOLE),
    ):
        protocol = PROTOCOLS.create(name).for_given_maps()
        found = ImageScorer(canvas() + 0.5, (), (SIDE, SIDE), View(protocol.view, SIDE)).find(
            protocol, np.array([0.2])
        )
        assert tuple(found.boxes[0].tolist()) == expected
        assert found.empty[0] == (name != "wsoleval-v1")


def test_a_hit_at_exactly_one_half() -> None:
    """Box 0..9 of area 100 in a truth of 20 x 10 = 200: IoU 0.5, counted by the +1 convention."""
    expected = {  # GT-known, top-k
        "gpca": (True, True),
        "wsoleval-v1": (True, True),
        "wsoleval-v2": (True, True),
        "danet": (False, False),
        "tscam": (True, False),
        "adl": (True, True),
        "bas": (False, False),
        "bas-ext": (True, True),
    }
    assert sorted(expected) == sorted(NAMES)
    corner = canvas()
    corner[:9, :9] = 1
    for name, (known, top) in expected.items():
        protocol = PROTOCOLS.create(name)
        view = View(protocol.view, SIDE)
        m, size = view.margin, (view.resized, view.resized)  # the image is as large as it is resized to
        # danet's box ends at its last pixel, 8, and so does its truth: 9 x 9 in 18 x 9
        truth = (0, 0, 18, 9) if name == "danet" else (m, m, m + 19, m + 9)
        found = ImageScorer(corner, [truth], size, view).find(protocol, np.array([0.3]))
        judge = Judge(protocol)
        assert judge.counted(found)[0] == 0.5
        assert judge.known(found)[0] == known, name
        assert judge.box_passes(found)[0] == top, name
        assert judge.top(found, 0, 1)[0] == top, name
        assert not judge.top(found, 1, 1)[0], "the class is wrong"


def test_a_share_of_the_maximum() -> None:
    """A faint map that is taken as it is: 0.2 of its maximum is 0.1, and 8-bit images are cut at a share."""
    faint = canvas()
    faint[4:20, 4:20] = 0.15
    faint[8:12, 8:12] = 0.5
    boxes = {}
    for name in ("adl", "tscam", "gpca"):
        protocol = PROTOCOLS.create(name).for_given_maps()
        assert protocol.name == name, "maps as they are make no other protocol"
        found = ImageScorer(faint, (), (SIDE, SIDE), View(protocol.view, SIDE)).find(
            protocol, np.array([0.2])
        )
        boxes[name] = tuple(found.boxes[0].tolist())
    assert boxes == {"adl": (4, 4, 20, 20), "tscam": (4, 4, 20, 20), "gpca": (8, 8, 12, 12)}


def test_another_normalisation_is_in_the_name() -> None:
    (changed,) = find_protocols(["gpca"], "pas")
    assert (changed.name, changed.extraction.recipe.normalize) == ("gpca+pas", "pas")
    assert find_protocols(["gpca+pas"]) == [changed], "and the name gives it back"
    assert find_protocols(["gpca"], "none")[0].name == "gpca+none", "raw maps are another evaluation"
    assert find_protocols(["gpca"], "minmax") == find_protocols(["gpca"]), "its own one changes nothing"
    with pytest.raises(ConfigError, match="unknown normalization 'pass'"):
        find_protocols(["gpca+pass"])


def test_v2_counts_the_best_contour() -> None:
    two = canvas()
    two[2:20, 2:20] = 1
    two[24:28, 24:28] = 0.9
    scorer = ImageScorer(two, [(24, 24, 28, 28)], (SIDE, SIDE), View("resize", SIDE))
    found = {n: scorer.find(PROTOCOLS.create(n), np.array([0.2])) for n in ("wsoleval-v1", "wsoleval-v2")}
    own = {n: Judge(PROTOCOLS.create(n)).counted(f)[0] for n, f in found.items()}
    assert own == {"wsoleval-v1": 0.0, "wsoleval-v2": 1.0}


def test_order_of_resizing_and_normalising() -> None:
    """A raw column of 1 among 0, four times enlarged: 0.125 0.375 0.625 0.875 0.875 ... on its flanks.

    Normalised first, 0.125 stays 0.125; normalised afterwards it becomes 0.125 / 0.875 = 0.143. At a
    threshold of 0.13 the latter's box is one pixel wider on either side.
    """
    raw = np.zeros((8, 8))
    raw[:, 3] = 1
    assert box_of("bas", raw, 0.13) == (11, 0, 17, 32)
    assert box_of("adl", raw, 0.13) == (10, 0, 18, 32)
    assert box_of("gpca", raw, 0.13) == (10, 0, 18, 31)
    assert box_of("danet", raw, 0.13) == (11, 0, 16, 31)


def test_bicubic_and_bilinear() -> None:
    """A raw column of 1, four times enlarged, 3.5 pixels from its centre (0.875 of a raw pixel).

    Linear: 0.125, with a largest value of 0.875: 0.143 after min-max. Cubic (a = -0.75): 0.1147, between a
    smallest of -0.1099 and a largest of 0.9673: 0.209. At 0.19 the cubic box is one pixel wider on each side.
    """
    raw = np.zeros((8, 8))
    raw[:, 3] = 1
    assert box_of("gpca", raw, 0.19) == (11, 0, 17, 31)
    assert box_of("wsoleval-v1", raw, 0.19) == (10, 0, 18, 31)


def test_danet_draws_in_the_original_image() -> None:
    raw = np.zeros((8, 8))
    raw[2:4, 2:4] = 1
    protocol = PROTOCOLS.create("danet")
    found = ImageScorer(raw, (), (80, 40), View("resize", SIDE)).find(protocol, np.array([0.5]))
    assert tuple(found.boxes[0].tolist()) == (20, 10, 39, 19)


@pytest.mark.parametrize("name", ["adl", "bas", "bas-ext"])
def test_crop_protocols_see_the_centre(name: str) -> None:
    """256 to 224: 16 pixels go on every side, and a truth box moves by them."""
    protocol = PROTOCOLS.create(name)
    score_map = np.zeros((224, 224))
    score_map[:112, :112] = 1
    scorer = ImageScorer(score_map, [(16, 16, 128, 128)], (256, 256), View("crop", 224))
    assert scorer.find(protocol, np.array([0.2])).single[0] == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_box_covers_the_pixels_that_were_found(name: str) -> None:
    """Whatever the far end of a protocol names, a drawing ends one beyond the last pixel."""
    protocol = PROTOCOLS.create(name)
    view = View(protocol.view, SIDE)
    size, m = (view.resized, view.resized), view.margin
    for low, high in ((4, 20), (0, SIDE)):
        raw = canvas()
        raw[low:high, low:high] = 1
        raw[10, 10] = 0  # never constant
        found = ImageScorer(raw, (), size, view).find(protocol, np.array([0.3]))
        drawn = protocol.extraction.to_original(view, found.boxes[0], size)
        assert drawn == (low + m, low + m, high + m, high + m)
