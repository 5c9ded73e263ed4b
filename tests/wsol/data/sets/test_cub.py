"""Data sets in CUB layout: what is read, and what selections and subsets give."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from wsol.config import Data
from wsol.data.faults import Faults
from wsol.data.index import detect_kind, open_dataset
from wsol.data.sets.cub import FILES, Cub, select_classes
from wsol.data.synthetic.paint import make_dataset
from wsol.errors import ConfigError, DataError
from wsol.records import Box


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """3 species with 3 images for training and 2 for test."""
    return make_dataset(tmp_path / "birds", species=3, train=3, test=2, size=48, progress=False)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_everything_is_read(root: Path) -> None:
    index = Cub().read(root, Faults())
    assert len(index.samples) == 15
    assert [len(index.split(s)) for s in ("train", "val", "test")] == [9, 0, 6]
    assert [name[:4] for name in index.classes] == ["001.", "002.", "003."]
    for sample in index.samples:
        assert sample.path == root / "images" / sample.name
        assert sample.name.startswith(index.classes[sample.label])
        assert sample.size is not None
        assert max(sample.size) == 48
        assert sample.segmentation_path is not None
        assert sample.segmentation_path.is_file()
    rows = [line.split() for line in (root / "bounding_boxes.txt").read_text().splitlines()]
    _, x, y, w, h = map(float, rows[7])
    assert index.samples[7].boxes == (Box(x, y, x + w, y + h),)


def test_ids_may_have_gaps_and_any_order(root: Path) -> None:
    before = Cub().read(root, Faults())
    for name in FILES:
        lines = (root / name).read_text().splitlines()
        column = {"classes.txt": (0,), "image_class_labels.txt": (0, 1)}.get(name, (0,))
        rows = [line.split(maxsplit=1) for line in lines]
        for row in rows:
            for c in column:
                row[c] = str(int(row[c]) * 10 + 7)
        (root / name).write_text("\n".join(" ".join(row) for row in reversed(rows)))
    after = Cub().read(root, Faults())
    assert after.digest() == before.digest()
    assert after.samples[0] == before.samples[-1]


def test_windows_line_ends_byte_order_marks_and_blank_lines_are_fine(root: Path) -> None:
    before = Cub().read(root, Faults())
    for name in FILES:
        raw = (root / name).read_bytes()
        (root / name).write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n") + b"\r\n  \r\n")
    assert Cub().read(root, Faults()) == before


def test_boxes_are_clipped_to_the_image(root: Path) -> None:
    path = root / "bounding_boxes.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["1 -5.5 10 1000 1000", *lines[1:]]))
    sample = Cub().read(root, Faults()).samples[0]
    assert sample.size is not None
    assert sample.boxes == (Box(0, 10, *sample.size),)


def test_an_unreadable_header_leaves_the_size_open(root: Path) -> None:
    path = Cub().read(root, Faults()).samples[4].path
    path.write_bytes(b"")
    sample = Cub().read(root, Faults()).samples[4]
    assert sample.size is None
    assert len(sample.boxes) == 1


def test_selection_keeps_labels_contiguous(root: Path) -> None:
    whole = Cub().read(root, Faults())
    part = Cub(classes=(3, 1)).read(root, Faults())
    assert part.classes == (whole.classes[0], whole.classes[2])
    assert {s.label for s in part.samples} == {0, 1}
    assert len(part.samples) == 10
    assert part.hierarchy is not None
    assert part.hierarchy.names[0] == part.classes
    by_name = Cub(classes=(whole.classes[0], whole.classes[2].partition(".")[2])).read(root, Faults())
    assert by_name == part


def test_every_nth_counts_ids_so_it_means_the_same_on_a_subset() -> None:
    whole = {i: f"{i:03d}.Bird" for i in range(1, 201)}
    fifth = select_classes(whole, "every-5")
    assert fifth == list(range(1, 201, 5))
    assert select_classes({i: whole[i] for i in fifth}, "every-5") == fifth


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("every-0", "is not a selection"),
        ("some", "say 'all', 'every-5' or give a list"),
        ((1, 99), "no class 99"),
        (("Black_footed_Albatros",), "did you mean 'Black_footed_Albatross'"),
    ],
)
def test_a_selection_that_cannot_be_meant(classes: str | tuple[int | str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        select_classes({1: "001.Black_footed_Albatross", 2: "002.Laysan_Albatross"}, classes)


def test_hierarchy_file_wins_over_the_table_of_cub(root: Path) -> None:
    index = Cub().read(root, Faults())
    assert index.hierarchy is not None
    assert index.hierarchy.levels == ("species", "family", "order")
    (root / "hierarchy.csv").unlink()
    assert Cub().read(root, Faults()).hierarchy is None  # these are no species of CUB
    for number, name in enumerate(
        ("001.Black_footed_Albatross", "009.Brewer_Blackbird", "200.Common_Yellowthroat")
    ):
        edit(root / "classes.txt", index.classes[number], name)
    hierarchy = Cub().read(root, Faults()).hierarchy
    assert hierarchy is not None
    assert hierarchy.names[1] == ("Diomedeidae", "Icteridae", "Parulidae")


def test_masks_may_lie_beside_the_data_set(root: Path) -> None:
    before = Cub().read(root, Faults())
    shutil.move(root / "segmentations", root.parent / "segmentations")
    after = Cub().read(root, Faults())
    assert after.samples[0].segmentation_path == root.parent / "segmentations" / before.samples[
        0
    ].name.replace(".jpg", ".png")
    shutil.rmtree(root.parent / "segmentations")
    assert Cub().read(root, Faults()).samples[0].segmentation_path is None


def test_a_pipe_in_place_of_a_list_is_named_and_not_opened(root: Path) -> None:
    (root / "images.txt").unlink()
    os.mkfifo(root / "images.txt")
    assert detect_kind(root) == detect_kind(root.parent) == "cub"
    with pytest.raises(DataError, match=r"images\.txt: not a regular file but a pipe"):
        open_dataset(Data("cub", root=root))


def test_a_missing_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such folder; .*wsol data prepare.*wsol data synth"):
        Cub().read(tmp_path / "nowhere", Faults())


def test_the_folder_above_is_recognised(root: Path) -> None:
    with pytest.raises(DataError, match=f"but {root} is a CUB data set: use that folder"):
        Cub().read(root.parent, Faults())


@pytest.mark.parametrize("name", [*FILES, "images"])
def test_a_missing_file_is_named(root: Path, name: str) -> None:
    (root / name).rename(root / "elsewhere")
    with pytest.raises(DataError, match=f"{root}: no {name}; a CUB data set has"):
        Cub().read(root, Faults())


def test_real_birds(shared: Path) -> None:
    root = shared / "cub40" / "CUB_200_2011"
    index = Cub().read(root, Faults())
    assert len(index.classes) == 40
    assert [len(index.split(s)) for s in ("train", "test")] == [1197, 1157]
    assert Cub(classes="every-5").read(root, Faults()) == index
    assert {s.label for s in index.samples} == set(range(40))
    for sample in index.samples:
        assert sample.size is not None
        (box,) = sample.boxes
        assert box.area > 0
        assert box == box.clip(*sample.size)
    assert index.hierarchy is not None
    assert index.hierarchy.num("species") == 40


def test_a_config_opens_it(root: Path) -> None:
    data = Data.of("cub", root=root, val_share=0.34, classes=(1, 2))
    index = open_dataset(data)
    assert [len(index.split(s)) for s in ("train", "val", "test")] == [4, 2, 4]
