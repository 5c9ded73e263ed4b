"""A run folder that version 0.1 made still opens, and its predictions give the same numbers, bit for bit.

`run_of_version_0_1` is a run of that version on twelve painted test images with one or two truth boxes each,
without its checkpoints. Its scores.json has no format number, its predictions have no image paths, its config
has the keys of then.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from wsol.errors import DataError
from wsol.run import Run
from wsol.scoring.protocols import VIEWS, find_protocols
from wsol.scoring.score import hold_out_thresholds, score_maps
from wsol.views.compare import compare_runs

FOLDER = Path(__file__).with_name("run_of_version_0_1")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(shutil.copytree(FOLDER, tmp_path / "run"))


def leaves(record: Any, path: str = "") -> dict[str, Any]:
    """Every value of nested records, by its path."""
    if isinstance(record, dict):
        return {k: v for key, value in record.items() for k, v in leaves(value, f"{path}/{key}").items()}
    if isinstance(record, list):
        return {k: v for i, value in enumerate(record) for k, v in leaves(value, f"{path}/{i}").items()}
    return {path: record}


def test_it_opens(run: Run) -> None:
    assert run.config.model.drop.options["gamma"] == 0.8
    assert len(run.history) == 3
    assert len(run.classes) == 3
    assert run.scores.checkpoint.startswith("best.ckpt")
    scores, predictions = run.evaluated(run.protocol())
    assert (scores.version, len(predictions)) == (1, 12)
    assert run.threshold(run.protocol()) == scores.at["held_out"].threshold


def test_the_training_keys_of_then_keep_their_meaning(run: Run) -> None:
    """momentum 0.8, nesterov, new layers at twice the rate, their biases at 1.5 times that."""
    train = run.config.train
    assert train.optimizer.name == "sgd"
    assert dict(train.optimizer.options) == {"momentum": 0.8, "nesterov": True}
    assert (train.rates.new, train.rates.new_bias) == (2.0, 3.0)


def test_scores_of_an_earlier_version_of_a_protocol_are_shown_but_not_used(run: Run) -> None:
    for protocol in find_protocols(["adl", "danet", "tscam", "bas"]):
        assert run.scores[protocol.name].version == 1 < protocol.version
        with pytest.raises(DataError, match=f"version 1 of protocol {protocol.name}, now there is version 2"):
            run.evaluated(protocol)
        with pytest.raises(DataError, match="versions are not compared"):
            compare_runs([run], protocol.name)
    assert compare_runs([run], "gpca").rows[0].protocol == "gpca"


def test_scores_of_an_earlier_version_say_so_and_choose_no_threshold(run: Run) -> None:
    (adl,) = find_protocols("adl")
    assert run.scores["adl"].at["held_out"].threshold != adl.extraction.fixed
    printed = (str(run.scores), str(run.scores["adl"]), run.scores._repr_html_(), run._repr_html_())
    for shown in printed:
        assert "adl, version 1" in shown
        assert "gpca, version" not in shown
    with pytest.warns(UserWarning, match="threshold is of version 1 of protocol adl, now there is version 2"):
        assert run.threshold(adl) == adl.extraction.fixed


def test_its_test_images_are_known_although_its_scores_do_not_say(run: Run) -> None:
    assert run.scores.test_digest == ""
    assert run.test_digest == run.predictions("test").test_digest()


def test_every_number_is_reproduced(run: Run) -> None:
    then = json.loads((FOLDER / "scores.json").read_text())["protocols"]
    for view in VIEWS:
        # Those of version 2 have other rules now: their old scores open, and are refused where it matters.
        protocols = [p for p in find_protocols("all") if p.view == view and p.name in then and p.version == 1]
        if not protocols:
            continue
        chosen = hold_out_thresholds(run.predictions("held_out", view), protocols)
        for name, scores in score_maps(run.predictions("test", view), protocols, chosen).items():
            before, now = leaves(then[name]), leaves(json.loads(json.dumps(scores.to_json())))
            kept = {
                key: value for key, value in before.items() if "/centre_box/max_box_acc_v2_by_iou" not in key
            }
            assert {key: now[key] for key in kept} == kept, name
