"""Bad maps given to `wsol score`: all are listed at once, none is scored in silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wsol.cli import main
from wsol.data.faults import Faults
from wsol.data.index import read_dataset
from wsol.data.synthetic.paint import make_dataset
from wsol.records import DataIndex


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> DataIndex:
    root = make_dataset(
        tmp_path_factory.mktemp("data") / "birds", species=3, train=2, test=6, size=80, seed=3
    )
    return read_dataset(root, Faults())


@pytest.fixture
def maps(index: DataIndex, tmp_path: Path) -> Path:
    """A good map for every test image: 1 on its box."""
    folder = tmp_path / "maps"
    for sample in index.split("test"):
        assert sample.size is not None
        width, height = sample.size
        score_map = np.zeros((height, width))
        x0, y0, x1, y1 = (round(v) for v in sample.boxes[0])
        score_map[y0:y1, x0:x1] = 1
        path = folder / f"{sample.name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, score_map)
    return folder


def file(maps: Path, index: DataIndex, number: int) -> Path:
    return maps / f"{index.split('test')[number].name}.npy"


def score(maps: Path, index: DataIndex, *more: str) -> int:
    return main(["score", "--maps", str(maps), "--data", str(index.root), *more])


def test_good_maps(maps: Path, index: DataIndex, tmp_path: Path) -> None:
    out = tmp_path / "new" / "scores.json"
    assert score(maps, index, "--protocol", "wsoleval-v2", "--json", str(out)) == 0
    record = json.loads(out.read_text())
    assert record["protocol"] == "wsoleval-v2"
    assert record["num_images"] == 18
    assert record["max_box_acc"] == record["max_box_acc_v2"] == record["gt_known_loc"] == 100.0
    assert record["max_box_acc_v2_by_iou"] == {"0.3": 100.0, "0.5": 100.0, "0.7": 100.0}
    assert 0 <= record["threshold"] < 1
    assert record["constant_maps"] == []
    assert "top1_loc" not in record, "there are no class scores"


def test_every_fault_is_listed_at_once(
    maps: Path, index: DataIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    good = np.load(file(maps, index, 0))
    faults = {
        0: ("missing", None),
        1: ("empty file", b""),
        2: ("values are NaN or infinite", np.where(good > 0, np.nan, 0)),
        3: ("values are NaN or infinite", np.where(good > 0, np.inf, 0)),
        4: ("expected height x width, got the shape (3, 4, 4)", np.zeros((3, 4, 4))),
        5: ("expected height x width, got the shape (0, 4)", np.zeros((0, 4))),
        6: ("expected floating point values, got uint8", good.astype(np.uint8)),
        7: ("expected floating point values, got bool", good > 0),
        8: ("expected values in [0, 1], got 0 to 255", good * 255),
        9: ("expected values in [0, 1], got -0.5 to 0.5", good - 0.5),
        10: ("not a .npy file that can be read", b"\x93NUMPY nonsense"),
        11: ("not a .npy file that can be read", np.array([{"a": 1}], dtype=object)),
    }
    for number, (_, content) in faults.items():
        path = file(maps, index, number)
        path.unlink()
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            np.save(path, content, allow_pickle=True)
    np.save(maps / "stray.npy", good)
    assert score(maps, index) == 2
    lines = capsys.readouterr().err.splitlines()
    for number, (reason, _) in faults.items():
        name = index.split("test")[number].name
        assert any(name in line and reason in line for line in lines), (name, reason)
    assert any("stray.npy: no image of" in line for line in lines)
    assert lines[-1].endswith("13 faults, listed above; nothing was scored")


def test_maps_of_other_splits_are_not_strangers(maps: Path, index: DataIndex) -> None:
    train = maps / f"{index.split('train')[0].name}.npy"
    train.parent.mkdir(parents=True, exist_ok=True)
    np.save(train, np.zeros((4, 4)))
    assert score(maps, index) == 0


def test_constant_maps_are_flagged_and_counted(
    maps: Path, index: DataIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(file(maps, index, 3), np.zeros((9, 9)))
    np.save(file(maps, index, 5), np.full((9, 9), 0.5, dtype=np.float32))
    out = tmp_path / "scores.json"
    assert score(maps, index, "--protocol", "adl", "--json", str(out)) == 0
    record = json.loads(out.read_text())
    assert record["constant_maps"] == [index.split("test")[i].name for i in (3, 5)]
    assert record["num_images"] == 18
    assert record["no_foreground"] == 2
    assert record["max_box_acc"] == pytest.approx(100 * 16 / 18)
    assert "constant maps: 2" in capsys.readouterr().out


def test_any_float_and_any_size(maps: Path, index: DataIndex) -> None:
    for number, dtype in enumerate((np.float16, np.float32, np.float64)):
        np.save(file(maps, index, number), np.load(file(maps, index, number)).astype(dtype))
    np.save(file(maps, index, 4), np.random.default_rng(0).random((14, 14)).astype(np.float16))
    np.save(file(maps, index, 5), np.asfortranarray(np.random.default_rng(0).random((50, 7))))
    assert score(maps, index, "--protocol", "all") == 0


def test_any_range_where_a_normalisation_follows(maps: Path, index: DataIndex, tmp_path: Path) -> None:
    for number in range(18):
        path = file(maps, index, number)
        np.save(path, np.load(path) * 40 - 7)
    assert score(maps, index) == 2
    out = tmp_path / "scores.json"
    assert score(maps, index, "--normalize", "minmax", "--json", str(out)) == 0
    assert json.loads(out.read_text())["max_box_acc"] == 100.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "wsoleval"], "unknown protocol 'wsoleval'"),
        (["--protocol", "gpca+pas"], "a normalisation comes by --normalize here"),
        (["--normalize", "standard"], "unknown normalization 'standard'"),
        (["--split", "val"], "no images in the split 'val'"),
    ],
)
def test_mistakes(
    maps: Path, index: DataIndex, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(maps, index, *arguments) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert message in errors[0]


def test_no_folder_of_maps(index: DataIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(tmp_path / "nowhere", index) == 2
    assert "no such folder" in capsys.readouterr().err
