"""The folder of predictions: several writers, nothing half written, nothing of another data set."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wsol.data.transforms import View
from wsol.errors import DataError, RunFolderError
from wsol.localization.predictions import Flag, Header, Predictions, PredictionsWriter, class_ranks
from wsol.records import Box, DataIndex, Sample

NUM, CLASSES = 20, 3


def make_index(num: int = NUM) -> DataIndex:
    samples = [
        Sample(f"a/{i}.jpg", Path(f"a/{i}.jpg"), i % CLASSES, (Box(i, 0, i + 5, 9),), "test", (40, 30))
        for i in range(num)
    ]
    return DataIndex("fake", Path("data"), tuple(samples), tuple("abc"))


def make_writer(folder: Path, index: DataIndex) -> PredictionsWriter:
    header = Header.of(index, index.samples, "test", View("crop", 64), "epoch 3", "abc")
    return PredictionsWriter(folder, folder.with_name("draft"), header)


def start(writer: PredictionsWriter, index: DataIndex) -> None:
    shutil.rmtree(writer.draft, ignore_errors=True)
    writer.draft.mkdir()
    writer.start([s.label for s in index.samples], [s.size for s in index.samples])


def write_rows(folder: Path, rows: range) -> None:
    """Rows whose values say which row they are."""
    writer = make_writer(folder, make_index())
    for row in rows:
        at = np.array([row])
        maps = np.arange(2 * 4 * 5, dtype=np.float32).reshape(1, 2, 4, 5) + row
        scores = np.full((1, CLASSES), row, dtype=np.float32)
        writer.write(at, scores, maps, np.array([False]), scores / np.float32(100))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    found = writer.finish()
    assert len(found) == NUM
    assert found.names == tuple(s.name for s in index.samples)
    assert found.classes == index.classes
    assert (found.view.kind, found.view.side) == ("crop", 64)
    assert found.truths(7).tolist() == [[7, 0, 12, 9]]
    assert found.size(0) == (40, 30)
    assert found.raw_map(7)[0, 0] == 7
    assert found.raw_map(7).dtype == np.float64
    assert found.masks is not None
    assert found.masks[9, 0] == np.float32(0.09)
    assert not found.unreadable(0)
    found.require(index)


def test_two_processes_write_one_folder(tmp_path: Path) -> None:
    """Each its own rows, at the same time, whoever opens the files first."""
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    spawn = multiprocessing.get_context("spawn")
    shares = [range(0, NUM, 2), range(1, NUM, 2)]
    workers = [spawn.Process(target=write_rows, args=(tmp_path / "p", share)) for share in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    together = writer.finish()

    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    alone = writer.finish()
    for name in ("scores", "maps", "flags", "masks"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))
    np.testing.assert_array_equal(together.scores[:, 0], np.arange(NUM))


def test_half_a_folder_is_not_a_folder(tmp_path: Path) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM - 3))
    with pytest.raises(DataError, match="3 of 20 images were not predicted"):
        writer.finish()
    with pytest.raises(DataError, match="no predictions here"):
        Predictions(tmp_path / "p")
    start(writer, index)  # a new attempt clears what the former left
    with pytest.raises(DataError, match="20 of 20 images"):
        writer.finish()


def test_a_former_folder_is_replaced_only_when_the_new_one_is_whole(tmp_path: Path) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    writer.finish()
    again = make_writer(tmp_path / "p", index)
    start(again, index)
    assert len(Predictions(tmp_path / "p")) == NUM


def test_a_kill_in_the_middle_of_the_swap_leaves_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step of the swap is the last one that happens, predictions are found under their name."""
    index = make_index()

    def write_all() -> PredictionsWriter:
        writer = make_writer(tmp_path / "p", index)
        start(writer, index)
        write_rows(tmp_path / "p", range(NUM))
        return writer

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write_all().finish()
    for step in ("exchange", "shutil.rmtree"):
        writer = write_all()
        with monkeypatch.context() as patch:
            patch.setattr(f"wsol.runs.files.{step}", killed)
            with pytest.raises(KeyboardInterrupt):
                writer.finish()
        assert len(Predictions(tmp_path / "p")) == NUM, f"killed at {step}"


def test_a_full_disk_is_one_line_and_keeps_the_former_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    writer.finish()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    start(writer, index)
    with pytest.raises(RunFolderError, match="No space left on device; the former predictions are intact"):
        write_rows(tmp_path / "p", range(NUM))
    assert len(Predictions(tmp_path / "p")) == NUM


def test_image_files_are_kept_relative_to_the_data_set(tmp_path: Path) -> None:
    inside = Sample("a/1.jpg", tmp_path / "birds/images/a/1.jpg", 0, (), "test", (9, 9))
    outside = Sample("b.jpg", tmp_path / "elsewhere/b.jpg", 0, (), "test", (9, 9))
    index = DataIndex("fake", tmp_path / "birds", (inside, outside), tuple("ab"))
    header = Header.of(index, index.samples, "test", View("resize", 8))
    writer = PredictionsWriter(tmp_path / "p", tmp_path / "draft", header)
    start(writer, index)
    zeros = np.zeros((2, 2, 2, 2), np.float32)
    writer.write(np.arange(2), zeros[:, :, 0, 0], zeros, np.zeros(2, bool))
    found = writer.finish()
    assert [found.image_path(row) for row in (0, 1)] == [inside.path, outside.path]
    moved = tmp_path / "new place"
    assert [found.image_path(row, moved) for row in (0, 1)] == [moved / "images/a/1.jpg", outside.path]


def test_flags(tmp_path: Path) -> None:
    index = make_index(4)
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    maps = np.random.default_rng(0).normal(size=(4, 2, 3, 3)).astype(np.float32)
    maps[1, 0, 1, 1] = np.nan
    maps[2, 0] = 4
    maps[3, 1] = np.inf  # of the best class, which no figure uses
    scores = np.zeros((4, CLASSES), dtype=np.float32)
    writer.write(np.arange(4), scores, maps, np.array([True, False, False, False]))
    found = writer.finish()
    assert (found.flags & ~np.uint8(Flag.WRITTEN)).tolist() == [
        Flag.UNREADABLE,
        Flag.NOT_FINITE,
        Flag.CONSTANT,
        0,
    ]
    assert found.masks is None
    assert found.ranks is not None
    assert found.ranks.tolist() == [CLASSES, 1, 2, 0]  # labels 0 1 2 0; the unreadable one comes last


def test_predictions_of_another_data_set(tmp_path: Path) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    found = writer.finish()
    other = index.with_samples(index.samples[:-1])
    with pytest.raises(DataError, match="predictions of another data set"):
        found.require(other)


@pytest.mark.parametrize("name", ["labels", "scores", "maps", "flags", "sizes"])
@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00garbage"])
def test_damaged_files(tmp_path: Path, name: str, damage: bytes) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    writer.finish()
    (tmp_path / "p" / f"{name}.npy").write_bytes(damage)
    with pytest.raises(DataError, match=rf"{name}\.npy: damaged predictions"):
        getattr(Predictions(tmp_path / "p"), name)


def test_pickled_as_a_path(tmp_path: Path) -> None:
    index = make_index()
    writer = make_writer(tmp_path / "p", index)
    start(writer, index)
    write_rows(tmp_path / "p", range(NUM))
    found = writer.finish()
    assert len(pickle.dumps(found)) < 1000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).scores, found.scores)


@given(
    arrays(np.float32, (4, 5), elements=st.sampled_from([0.0, 1.0, 2.0])),
    st.lists(st.integers(0, 4), min_size=4, max_size=4),
)
def test_ranks_are_those_of_a_stable_sort(scores: np.ndarray, labels: list[int]) -> None:
    order = np.argsort(-scores, axis=1, kind="stable")
    expected = [order[i].tolist().index(label) for i, label in enumerate(labels)]
    assert class_ranks(scores, np.array(labels)).tolist() == expected


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("maps", np.zeros((1, 2, 4, 4), np.float32)),
        ("labels", np.full(99, 5)),
        ("scores", np.array([["a"]])),
        ("flags", np.zeros((2, 2), np.uint8)),
    ],
)
def test_arrays_of_another_shape_or_type_are_damaged(tmp_path: Path, name: str, array: np.ndarray) -> None:
    from tests.helpers.evaluated_runs import make_evaluated_run

    folder = make_evaluated_run(tmp_path / "run") / "predictions" / "test-resize"
    np.save(folder / f"{name}.npy", array)
    with pytest.raises(DataError, match=rf"{name}\.npy: damaged predictions"):
        getattr(Predictions(folder), name)


def test_labels_of_no_class_are_refused(tmp_path: Path) -> None:
    from tests.helpers.evaluated_runs import make_evaluated_run

    folder = make_evaluated_run(tmp_path / "run") / "predictions" / "test-resize"
    labels = np.load(folder / "labels.npy")
    np.save(folder / "labels.npy", labels + 99)
    with pytest.raises(DataError, match="labels of no class"):
        Predictions(folder)
