"""Opening by config, holding out, and the check before a run."""

from __future__ import annotations

import random
import shutil
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsol.config import Data
from wsol.data.index import hold_out, open_dataset, refuse_bad_images
from wsol.data.synthetic.paint import make_dataset
from wsol.errors import DataError
from wsol.notices import WsolNote
from wsol.records import DataIndex, Sample


def index_of(counts: list[int]) -> DataIndex:
    """A data set with that many training images of each class, and one for test."""
    samples = []
    for label, count in enumerate(counts):
        names = [f"c{label}/{i}" for i in range(count + 1)]
        samples += [Sample(n, Path(n), label, (), "train") for n in names[:-1]]
        samples.append(Sample(names[-1], Path(names[-1]), label, (), "test"))
    return DataIndex("made", Path(), tuple(samples), tuple(f"c{i}" for i in range(len(counts))))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.floats(0, 0.9), st.integers(0, 5))
def test_held_out_share_of_each_class(counts: list[int], share: float, seed: int) -> None:
    index = index_of(counts)
    held = hold_out(index, share, seed)
    assert held.split("test") == index.split("test")
    assert {s.name for s in held.samples} == {s.name for s in index.samples}
    for label, count in enumerate(counts):
        val = sum(s.label == label for s in held.split("val"))
        if share > 0 and count >= 2:
            assert 1 <= val <= count - 1
            assert abs(val - share * count) <= 1
        else:
            assert val == 0


def test_held_out_images_do_not_depend_on_order_or_on_other_classes() -> None:
    def held(index: DataIndex, seed: int = 0) -> set[str]:
        return {s.name for s in hold_out(index, 0.3, seed).split("val")}

    index = index_of([20, 20, 20])
    shuffled = list(index.samples)
    random.Random(0).shuffle(shuffled)
    assert held(index) == held(index.with_samples(shuffled))
    assert held(index) != held(index, seed=1)
    first = index.with_samples([s for s in index.samples if s.label == 0])
    assert held(first) == {n for n in held(index) if n.startswith("c0/")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "birds", species=2, train=3, test=2, size=48, progress=False)


def test_the_config_says_how_many_are_held_out_and_which(root: Path) -> None:
    held = {
        seed: {s.name for s in open_dataset(Data(root=root, val_share=0.4, val_seed=seed)).split("val")}
        for seed in range(6)
    }
    assert all(len(names) == 2 for names in held.values()), "one of three in each class"
    assert len({frozenset(names) for names in held.values()}) > 1


def test_good_images_pass(root: Path) -> None:
    index = open_dataset(Data.of("cub", root=root))
    assert refuse_bad_images(index, "stop") == (index, ())


def test_bad_images_stop_a_run_or_are_skipped_and_counted(root: Path) -> None:
    index = open_dataset(Data.of("cub", root=root))
    empty, cut = index.split("train")[1], index.split("train")[4]
    tested = index.split("test")[0]
    empty.path.write_bytes(b"")
    cut.path.write_bytes(cut.path.read_bytes()[:-40])
    tested.path.unlink()
    with pytest.raises(
        DataError, match=r"no such image file \(and 2 more\); 'wsol data check .*on_bad_image"
    ):
        refuse_bad_images(index, "stop")
    kept, skipped = refuse_bad_images(index, "skip")
    assert len(skipped) == 3
    assert set(index.split("train")) - set(kept.split("train")) == {empty, cut}
    assert kept.split("test") == index.split("test")  # the denominator stays


def test_an_image_for_training_that_is_also_for_test_is_refused(root: Path) -> None:
    index = open_dataset(Data.of("cub", root=root))
    train, test = index.split("train")[0], index.split("test")[3]
    shutil.copy(train.path, test.path)
    with pytest.raises(DataError, match=f"{train.path}: the same image as {test.path}, which is for test"):
        refuse_bad_images(index, "stop")
    kept, skipped = refuse_bad_images(index, "skip")
    assert train not in kept.samples
    assert test in kept.samples
    assert len(skipped) == 1


def test_synthetic_birds_are_painted_once(tmp_path: Path) -> None:
    options = {"species": 2, "train": 2, "test": 1, "size": 48}
    data = Data.of("synthetic", root=tmp_path / "birds", **options)
    with pytest.warns(WsolNote, match="painting 6 images of 2 species"):
        index = open_dataset(data)
    assert (index.name, len(index.samples), len(index.classes)) == ("synthetic", 6, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_dataset(data) == index


def test_other_birds_than_asked_for_are_used_and_said(tmp_path: Path) -> None:
    root = make_dataset(tmp_path / "birds", species=2, train=2, test=1, size=48, progress=False)
    data = Data.of("synthetic", root=root, species=2, train=5, test=1, size=48)
    with pytest.warns(WsolNote) as said:
        index = open_dataset(data)
    assert (index.name, len(index.samples)) == ("synthetic", 6)
    assert str(said[0].message) == (
        f"{root} holds other birds than the config asks for (training images: 4 instead of 10); "
        "these are used; to have the others painted, set data.root to a new folder"
    )
