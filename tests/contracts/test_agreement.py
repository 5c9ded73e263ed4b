"""Scores, gallery, live figures, error kinds and pictures agree on every image, under every protocol."""

from __future__ import annotations

import base64
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.evaluated_runs import EXACT, HELD_OUT, figure_by_hand, judged_by_hand, make_evaluated_run
from wsol.run import Run
from wsol.scoring.error_kinds import OUTCOMES
from wsol.scoring.protocols import find_protocols
from wsol.views.picked import draw_picked
from wsol.views.report import ALL_CONTOURS_NOTE, build_page

BOXES = {"one box": 1, "several boxes": 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("agreement")
    return {name: make_evaluated_run(folder / name, boxes, seed=1) for name, boxes in BOXES.items()}


def unpack(text: str, dtype: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)


@cache
def gallery_of(path: Path, protocol: str) -> dict[str, Any]:
    """What the page's script gets, unpacked."""
    data = build_page([Run(path)], find_protocols(protocol)[0]).gallery
    side, shape = data["runs"][0], (len(data["images"]["name"]), len(data["thresholds"]))
    words = {which: unpack(side[which]["overlap"], "<u2", *shape) for which in ("true", "top")}
    return {
        "thresholds": data["thresholds"],
        "start": data["start"],
        "hit": {which: own >> 15 == 1 for which, own in words.items()},
        "overlap": {which: (own & 0x7FFF) / 10000 for which, own in words.items()},
        "kind": unpack(side["kind"], "u1", *shape),
        "live": {figure["label"]: figure["values"] for figure in side["live"]},
    }


@pytest.mark.parametrize("boxes", BOXES)
@pytest.mark.parametrize("name", [p.name for p in find_protocols("all")])
def test_gallery_live_figures_and_kinds_agree_with_the_scores(
    runs: dict[str, Path], name: str, boxes: str
) -> None:
    run, protocol = Run(runs[boxes]), find_protocols(name)[0]
    scores, predictions = run.evaluated(protocol)
    gallery = gallery_of(runs[boxes], name)
    # The slider stops at the protocol's own threshold, and at the one that pictures use.
    for at in (scores.at[scores.threshold_kind], scores.at["held_out"]):
        column = gallery["thresholds"].index(at.threshold)
        by_hand = {
            which: [
                judged_by_hand(protocol, predictions, row, at.threshold, i) for row in range(len(predictions))
            ]
            for i, which in enumerate(("true", "top"))
        }
        for which, expected in by_hand.items():
            overlap = [image.overlap for image in expected]
            np.testing.assert_allclose(gallery["overlap"][which][:, column], overlap, atol=1.01e-4)
        known, top = [image.known for image in by_hand["true"]], [image.top for image in by_hand["true"]]
        assert gallery["hit"]["true"][:, column].tolist() == known
        assert gallery["hit"]["top"][:, column].tolist() == top == [image.top for image in by_hand["top"]]
        outcomes = [OUTCOMES[i] for i in gallery["kind"][:, column]]
        assert [outcome == "hit" for outcome in outcomes] == top
        labels = predictions.labels.tolist()
        assert at.figures["gt_known_loc"] == pytest.approx(figure_by_hand(protocol, known, labels))
        assert at.figures["top1_loc"] == pytest.approx(figure_by_hand(protocol, top, labels))
        for label, key in (
            ("GT-known", "gt_known_loc"),
            ("top-1 loc", "top1_loc"),
            ("top-5 loc", "top5_loc"),
        ):
            assert gallery["live"][label][column] == f"{at.figures[key]:.1f}"
        if at.threshold == scores.threshold:
            assert column == gallery["start"]
            assert Counter(outcomes) == Counter({k: n for k, n in scores.errors.items() if n})


@pytest.mark.parametrize("boxes", BOXES)
@pytest.mark.parametrize("name", [p.name for p in find_protocols("all")])
def test_pictures_agree_with_the_gallery(runs: dict[str, Path], name: str, boxes: str) -> None:
    run, protocol = Run(runs[boxes]), find_protocols(name)[0]
    _, predictions = run.evaluated(protocol)
    gallery = gallery_of(runs[boxes], name)
    column = gallery["thresholds"].index(HELD_OUT)
    drawn = list(draw_picked([run], protocol, "random", 99))
    assert len(drawn) == len(predictions) - 1, "all but the one that could not be read"
    for image in drawn:
        row = predictions.names.index(image.name)
        (side,) = image.sides
        assert side.threshold == HELD_OUT, "chosen on held-out images, as `load` and `localize` have it"
        assert side.outcome == OUTCOMES[gallery["kind"][row, column]]
        assert (side.outcome == "hit") == gallery["hit"]["top"][row, column]
        assert side.overlap == pytest.approx(gallery["overlap"]["top"][row, column], abs=1.01e-4)


@pytest.mark.parametrize("boxes", BOXES)
def test_the_runs_hold_the_cases_that_tell_rules_apart(runs: dict[str, Path], boxes: str) -> None:
    """Else the tests above could pass with any rule."""
    from wsol.scoring.judged import Judged

    run = Run(runs[boxes])
    v2 = find_protocols("wsoleval-v2")[0]
    scores, predictions = run.evaluated(v2)
    judged = Judged.at(predictions, v2, sorted({scores.threshold, HELD_OUT}))
    single, best = judged.judge.single(judged.found), judged.known()
    assert (best & ~single).any(), "the best contour hits where the largest one misses"
    tscam = find_protocols("tscam")[0]
    overlap = Judged.at(run.evaluated(tscam)[1], tscam, [HELD_OUT]).overlap[:, 0]
    assert 0.5 in overlap[list(EXACT)], "hits that need IoU 0.5 differ from those that need more"
    assert len(set(scores.errors.values())) > 2
    bas = find_protocols("bas")[0]
    by_crops, by_view = run.evaluated(bas)[1], run.predictions("test", "crop")
    assert not np.array_equal(np.asarray(by_crops.ranks), np.asarray(by_view.ranks)), (
        "ten crops rank otherwise than the centre crop"
    )
    hits = Judged.at(by_crops, bas, [HELD_OUT]).known()[:, 0]
    assert figure_by_hand(bas, hits.tolist(), by_crops.labels.tolist()) != pytest.approx(100 * hits.mean())


@pytest.mark.parametrize("name", [p.name for p in find_protocols("all")])
def test_the_page_says_where_the_drawn_box_is_not_the_counted_one(runs: dict[str, Path], name: str) -> None:
    protocol = find_protocols(name)[0]
    note = build_page([Run(runs["one box"])], protocol, num_images=0).gallery_note
    assert (ALL_CONTOURS_NOTE in note) == (protocol.extraction.box == "all contours")
