"""One pass that lists every fault, and the command that prints it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from wsol.cli import main
from wsol.config import Data
from wsol.data.check import check_dataset
from wsol.data.faults import Faults
from wsol.data.image_cache import NAME
from wsol.data.index import detect_kind, open_dataset
from wsol.data.sets.cub import Cub
from wsol.data.synthetic.paint import make_dataset
from wsol.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "birds", species=2, train=4, test=2, size=48, progress=False)


def test_a_good_data_set_has_no_fault(root: Path) -> None:
    report = check_dataset(root)
    assert report.faults == report.notes == ()
    assert report.summary() == "12 images, 2 classes, no fault"


def test_every_annotation_fault_is_listed(root: Path) -> None:
    boxes, labels, splits = (
        root / f"{n}.txt" for n in ("bounding_boxes", "image_class_labels", "train_test_split")
    )

    def change(path: Path, changes: dict[int, str]) -> None:
        lines = path.read_text().splitlines()
        for line, text in changes.items():
            lines[line - 1] = text
        path.write_text("\n".join(lines))

    change(boxes, {2: "2 1 1 0 5", 3: "3 1 1 nan 5", 4: "4 1 1", 5: "5 900 900 5 5", 6: "99 1 1 5 5"})
    change(labels, {7: "7 55"})
    change(splits, {8: "8 2", 9: "1 1"})
    report = check_dataset(root)
    expected = [
        (labels, ":7: unknown class 55"),
        (boxes, ":2: box of width 0"),
        (boxes, ":3: 'nan' is not a number"),
        (boxes, ":4: expected 'IMAGE_ID X Y WIDTH HEIGHT', got 3 columns"),
        (boxes, ":6: unknown image 99"),
        (splits, ":8: expected 1 (training) or 0 (test)"),
        (splits, ":9: id 1 is listed twice, first in line 1"),
        (boxes, ":5: box (900, 900, 905, 905) lies outside"),
    ]
    for path, reason in expected:
        assert any(fault.startswith(f"{path}{reason}") for fault in report.faults), (reason, report.faults)
    without_row = [f for f in report.faults if "has no row in" in f]
    assert len(without_row) == 4 + 1 + 2  # of boxes, labels and splits
    assert len(report.faults) == len(expected) + len(without_row)


def test_every_bad_and_every_strange_file_is_listed_in_one_pass(root: Path) -> None:
    paths = [s.path for s in Cub().read(root, Faults()).samples]
    paths[0].unlink()
    paths[1].write_bytes(b"")
    paths[2].write_bytes(paths[2].read_bytes()[:-100])
    paths[3].write_text("a poem")
    size = Image.open(paths[4]).size
    Image.open(paths[4]).convert("L").save(paths[4])
    Image.open(paths[5]).convert("CMYK").save(paths[5])
    Image.new("I;16", Image.open(paths[6]).size).save(paths[6], format="PNG")
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.open(paths[7]).save(paths[7], exif=exif)
    (root / "images" / "stray.jpg").write_bytes(b"")
    (root / NAME).unlink()
    altered = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}

    report = check_dataset(root)
    assert [(f.split(": ")[0], f.split(": ")[1].split(" (")[0]) for f in report.faults] == [
        (str(paths[0]), "no such image file"),
        (str(paths[1]), "empty file"),
        (str(paths[2]), "damaged image"),
        (str(paths[3]), "not an image"),
    ]
    assert [n.split(";")[0] for n in report.notes] == [
        f"{paths[4]}: grey",
        f"{paths[5]}: CMYK",
        f"{paths[6]}: grey, 16-bit",
        f"{paths[7]}: rotated by EXIF",
        f"{root}/images/stray.jpg: in no list, so not part of the data set",
    ]
    assert size == Image.open(paths[4]).size
    after = {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != NAME}
    assert after == altered  # nothing is repaired


def test_the_same_content_in_training_and_test_is_a_fault(root: Path) -> None:
    index = Cub().read(root, Faults())
    train, test, other = index.split("train")[0], index.split("test")[0], index.split("train")[5]
    shutil.copy(train.path, test.path)
    shutil.copy(train.path, other.path)
    for sample in (test, other):
        assert sample.segmentation_path is not None
        assert train.segmentation_path is not None
        shutil.copy(train.segmentation_path, sample.segmentation_path)
    report = check_dataset(root)
    copies = [f for f in report.faults if "the same image" in f]
    assert copies == [
        f"{test.path}: the same image as {train.name}: one is for training, one for test",
        f"{other.path}: the same image as {test.name}: one is for training, one for test",
    ]


def test_segmentations_are_read_too(root: Path) -> None:
    first, second = Cub().read(root, Faults()).samples[:2]
    assert first.segmentation_path is not None
    assert second.segmentation_path is not None
    first.segmentation_path.write_bytes(b"")
    Image.new("L", (3, 5)).save(second.segmentation_path)
    faults = check_dataset(root).faults
    assert len(faults) == 2
    assert faults[0].startswith(f"{second.segmentation_path}: segmentation of 3 x 5 for an image of")
    assert faults[1] == f"{first.segmentation_path}: empty file"


def test_a_segmentation_of_another_size_is_refused_when_a_run_opens_the_data(root: Path) -> None:
    path = Cub().read(root, Faults()).samples[1].segmentation_path
    assert path is not None
    Image.new("L", (3, 5)).save(path)
    with pytest.raises(DataError, match=rf"{path}: segmentation of 3 x 5 for an image of \d+ x \d+"):
        open_dataset(Data.of("cub", root=root))


def test_images_without_a_segmentation_are_counted(root: Path) -> None:
    samples = Cub().read(root, Faults()).samples
    for sample in samples[3:5]:
        assert sample.segmentation_path is not None
        sample.segmentation_path.unlink()
    report = check_dataset(root)
    assert report.faults == ()
    assert report.notes == (f"{root}: 2 of 12 images have no segmentation, the first is {samples[3].name}",)
    shutil.rmtree(root / "segmentations")
    assert check_dataset(root).notes == ()


def test_clipped_boxes_and_empty_classes_are_noted(root: Path) -> None:
    text = (root / "bounding_boxes.txt").read_text().splitlines()
    (root / "bounding_boxes.txt").write_text("\n".join(["1 -2 -2 10 10", *text[1:]]))
    (root / "classes.txt").open("a").write("3 003.Nobody\n")
    (root / "hierarchy.csv").unlink()
    report = check_dataset(root)
    assert report.faults == ()
    assert report.notes[0].startswith(f"{root}/bounding_boxes.txt:1: box (-2, -2, 8, 8) clipped to the image")
    assert report.notes[1:] == tuple(f"{root}: class 003.Nobody has no {s} image" for s in ("train", "test"))


def test_kind_is_seen_from_the_folder(root: Path, tmp_path: Path) -> None:
    assert detect_kind(root) == detect_kind(root.parent) == "cub"
    (tmp_path / "photos" / "wren").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(tmp_path / "photos" / "wren" / "1.png")
    assert detect_kind(tmp_path / "photos") == "folder"
    assert check_dataset(tmp_path / "photos").index.classes == ("wren",)


def test_the_command_prints_counts_and_exits_by_what_it_found(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check", str(root)]) == 0
    assert capsys.readouterr().out == "12 images, 2 classes, no fault\n"
    bad = Cub().read(root, Faults()).samples[0].path
    bad.write_bytes(b"")
    assert main(["data", "check", str(root)]) == 1
    assert capsys.readouterr().out == f"fault: {bad}: empty file\n12 images, 2 classes, 1 fault\n"
    assert main(["data", "check", str(root / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_info_prints_facts_and_draws_a_sheet(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = root.parent / "pictures" / "sheet.png"
    assert main(["data", "info", str(root), "--out", str(sheet)]) == 0
    out = capsys.readouterr().out
    for fact in ("classes        2", "train          8 images, 4 to 4", "segmentations  12", str(sheet)):
        assert fact in out
    assert Image.open(sheet).width > 400


def test_synth_makes_what_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new"
    arguments = ["--species", "2", "--train", "2", "--test", "1", "--size", "48"]
    assert main(["data", "synth", str(out), *arguments]) == 0
    assert main(["data", "check", str(out)]) == 0
    assert "6 images, 2 classes, no fault" in capsys.readouterr().out
    assert main(["data", "synth", str(out), *arguments]) == 2  # never over what is there


def test_real_birds_have_no_fault(shared: Path) -> None:
    report = check_dataset(shared / "cub40" / "CUB_200_2011")
    assert report.summary() == "2,354 images, 40 classes, no fault"
