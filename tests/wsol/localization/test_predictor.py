"""A localizer over a split: what is written is what the network says, on one rank or on two."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

from wsol.config import Attention, Backbone, Head, Model
from wsol.data.faults import Faults
from wsol.data.image import read_image
from wsol.data.index import read_dataset
from wsol.data.synthetic.paint import make_dataset
from wsol.data.transforms import View
from wsol.localization.predictions import Header, Predictions
from wsol.localization.predictor import predict
from wsol.models.localizer import Localizer, build_localizer
from wsol.records import DataIndex
from wsol.runs.ranks import Ranks

T = TypeVar("T")


@dataclass(frozen=True)
class InThreads(Ranks):
    """Ranks as threads of this process that wait for each other."""

    barrier: threading.Barrier
    box: dict[str, Any] = field(default_factory=dict)

    def on_main(self, act: Callable[[], T]) -> T:
        if self.rank == 0:
            self.box["result"] = act()
        self.barrier.wait()
        result: T = self.box["result"]
        self.barrier.wait()
        return result

    def gather(self, value: T) -> list[T]:
        self.barrier.wait()
        return [value] * self.world


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> DataIndex:
    root = make_dataset(
        tmp_path_factory.mktemp("data") / "birds", species=3, train=2, test=5, size=80, seed=1
    )
    return read_dataset(root, Faults())


@pytest.fixture(scope="module")
def localizer() -> Localizer:
    torch.manual_seed(0)
    model = Model(
        backbone=Backbone.of("tiny"),
        weights="none",
        head=Head.of("cam", channels=8),
        attention=Attention.of("se"),
    )
    return build_localizer(model, 3).eval()


def run_predict(localizer: Localizer, index: DataIndex, folder: Path, ranks: Ranks, batch: int = 4) -> Any:
    samples = index.split("test")
    header = Header.of(index, samples, "test", View("resize", 64), "untrained")
    return predict(localizer, samples, folder, header, ranks, batch=batch, workers=0)


def test_rows_are_what_the_network_says(localizer: Localizer, index: DataIndex, tmp_path: Path) -> None:
    found = run_predict(localizer, index, tmp_path / "p", Ranks.alone(), batch=1)
    for row, sample in enumerate(index.split("test")):
        square = View("resize", 64).apply(read_image(sample.path))
        with torch.inference_mode():
            output = localizer(torch.from_numpy(square.transpose(2, 0, 1).copy())[None])
            best = int(output.logits.argmax())
            maps = localizer.maps_for(output, torch.tensor([[sample.label, best]]))
        np.testing.assert_array_equal(found.scores[row], output.logits[0].numpy())
        np.testing.assert_array_equal(found.maps[row], maps[0].numpy())
        np.testing.assert_array_equal(found.masks[row], localizer.masks()[-1][0].numpy())
    assert found.names == tuple(s.name for s in index.split("test"))


def test_two_ranks_write_what_one_writes(localizer: Localizer, index: DataIndex, tmp_path: Path) -> None:
    """15 images in batches of 4: the ranks have different numbers of batches and nothing is padded."""
    alone = run_predict(localizer, index, tmp_path / "one", Ranks.alone())
    barrier, box = threading.Barrier(2), dict[str, Any]()
    teams = [InThreads(rank, 2, torch.device("cpu"), barrier, box) for rank in (0, 1)]
    errors: list[BaseException] = []

    def work(team: InThreads) -> None:
        try:
            # Each with a localizer of its own, as ranks have: an attention keeps its last mask.
            run_predict(copy.deepcopy(localizer), index, tmp_path / "two", team)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(team,)) for team in teams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors

    both = Predictions(tmp_path / "two")
    for name in ("scores", "maps", "masks", "flags"):
        np.testing.assert_array_equal(getattr(both, name), getattr(alone, name))


def test_an_unreadable_image_is_flagged_and_stays(
    localizer: Localizer, index: DataIndex, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"not an image")
    name = index.split("test")[3].name
    changed = index.with_samples([replace(s, path=broken) if s.name == name else s for s in index.samples])
    found = run_predict(localizer, changed, tmp_path / "p", Ranks.alone())
    assert len(found) == len(index.split("test"))
    assert found.faults()["unreadable_images"] == [name]
    assert found.ranks[3] == len(index.classes)
