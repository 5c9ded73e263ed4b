"""Data sets as an extension point: one class with one registration is all it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from wsol.config_file import config_from_dict
from wsol.data.check import check_dataset
from wsol.data.faults import Faults
from wsol.data.image_cache import cached_sizes
from wsol.data.index import detect_kind, open_dataset, read_dataset
from wsol.data.sets.data_set import DataSet
from wsol.errors import ConfigError, DataError
from wsol.records import DataIndex, Sample
from wsol.registry import DATASETS


class Pairs(DataSet):
    """The example of the docstring of DataSet."""

    def __init__(self, test_number: int = 0) -> None:
        self.test_number = test_number

    @classmethod
    def detect(cls, root: Path) -> bool:
        return any(root.glob("*_*.png"))

    def read(self, root: Path, faults: Faults) -> DataIndex:
        paths = sorted(root.glob("*_*.png"))
        classes = sorted({path.stem.split("_")[0] for path in paths})
        samples = []
        for path, size in zip(paths, cached_sizes(root, paths), strict=True):
            name, number = path.stem.split("_")
            split = "test" if int(number) == self.test_number else "train"
            samples.append(Sample(path.name, path, classes.index(name), (), split, size))
        return DataIndex("pairs", root, tuple(samples), tuple(classes))


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of that kind, while the kind is registered."""
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS.entries()))
    DATASETS.register("pairs", "images called CLASS_NUMBER.png in one folder")(Pairs)
    for i, name in enumerate(("wren", "robin")):
        for j in range(3):
            Image.new("RGB", (9, 7), (50 * i, 50 * j, 0)).save(tmp_path / f"{name}_{j}.png")
    return tmp_path


def test_a_registered_kind_is_opened_by_config_detected_and_checked(pairs: Path) -> None:
    config = config_from_dict({"data": {"name": "pairs", "root": str(pairs), "test_number": 2}})
    index = open_dataset(config.data)
    assert (index.name, index.classes) == ("pairs", ("robin", "wren"))
    assert [s.name for s in index.split("test")] == ["robin_2.png", "wren_2.png"]
    assert detect_kind(pairs) == "pairs", "before 'folder', which would take any folder"
    report = check_dataset(pairs, test_number=1)
    assert report.faults == ()
    assert [s.name for s in report.index.split("test")] == ["robin_1.png", "wren_1.png"]


def test_a_class_without_its_methods_is_refused() -> None:
    class Half(DataSet):
        @classmethod
        def detect(cls, root: Path) -> bool:
            return False

    with pytest.raises(ValueError, match="'half' lacks the method read"):
        DATASETS.register("half", "nothing to read")(Half)


def test_an_option_decides_which_kinds_are_asked(birds: Path, tmp_path: Path) -> None:
    assert detect_kind(birds) == "cub"
    assert detect_kind(birds, ["annotations"]) == "folder"
    with pytest.raises(ConfigError, match="no kind of data set takes the options annotations, classes"):
        detect_kind(birds, ["annotations", "classes"])
    with pytest.raises(ConfigError, match="dataset 'cub' takes no option 'annotations'"):
        read_dataset(birds, Faults(), "cub", annotations=tmp_path / "boxes.csv")
    assert read_dataset(birds, Faults(), "cub", annotations=None).name == "cub"


def test_an_unknown_kind_and_a_missing_folder(birds: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown dataset 'cab'; did you mean 'cub'"):
        read_dataset(birds, Faults(), "cab")
    for kind in (None, "cub", "folder", "synthetic"):
        with pytest.raises(DataError, match=r"nowhere: no such folder; .*data prepare.*data synth"):
            read_dataset(tmp_path / "nowhere", Faults(), kind)
    assert not (tmp_path / "nowhere").exists(), "reading never paints"
