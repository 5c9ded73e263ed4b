"""The figures of an epoch: sums, one line, one row."""

from __future__ import annotations

import pytest

from wsol.runs.history import Row
from wsol.training.log import EpochSums, clock, epoch_line

ROW: Row = {
    "epoch": 3,
    "lr": 0.0082,
    "loss": 1 / 3,
    "accuracy": 0.4123,
    "mask_std": 1.2e-4,
    "images_per_second": 212.4,
    "seconds": 48.2,
}


def test_sums_continue_from_their_state() -> None:
    whole, first = EpochSums(), EpochSums()
    steps = [{"images": 4.0, "loss": 0.1}, {"images": 4.0, "loss": 0.7}, {"images": 2.0, "loss": 1e-9}]
    for step in steps:
        whole.add(step)
    first.add(steps[0])
    state = {**first.state(), "seconds": 100.0}
    second = EpochSums(**state)
    for step in steps[1:]:
        second.add(step)
    assert second.means() == whole.means() == {"loss": (0.1 + 0.7 + 1e-9) / 10}
    assert 100 < second.seconds < 200


def test_an_epoch_in_one_line() -> None:
    line = epoch_line({**ROW, "val_top1_cls": 0.55, "val_gt_known_loc": 0.481, "val_top1_loc": 0.3}, 12, 372)
    assert line == (
        "epoch  3/12  loss 0.333  acc  41.2 %  lr 0.0082  "
        "val: cls  55.0 %  top-1 loc  30.0 %  GT-known  48.1 %  "
        "mask std 1.2e-04  212 images/s  0:48, 6:12 left"
    )
    assert "left" not in epoch_line(ROW, 3, 0)


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0:00"), (59.6, "1:00"), (3725, "1:02:05")])
def test_a_duration(seconds: float, text: str) -> None:
    assert clock(seconds) == text
