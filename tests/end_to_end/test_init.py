"""`wsol init`: what it says of a folder, what it writes, and that the config works without an edit."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsol.api import first_config, starting
from wsol.cli import main
from wsol.config import Config

OFFLINE = "the network does not answer"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(starting, "weights_problem", lambda: OFFLINE)


def make_photos(root: Path, classes: tuple[str, ...] = ("cat", "dog"), each: int = 5) -> list[str]:
    """Photos of noise, no two alike; returns their names below `root`."""
    draw = np.random.default_rng(0)
    names = []
    for name in classes:
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(each):
            names.append(f"{name}/{i}.png" if name else f"{i}.png")
            Image.fromarray(draw.integers(0, 255, (40, 50, 3), np.uint8)).save(root / names[-1])
    return names


def write_table(path: Path, names: list[str]) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "x0", "y0", "x1", "y1"])
        rows.writerows([name, 5, 5, 30, 30] for name in names)
    return path


def init(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, Config]:
    """What `wsol init` printed, and the config that it wrote."""
    assert main(["init", *arguments]) == 0
    said = capsys.readouterr().out
    path = said.rpartition("next: wsol train ")[2].strip().strip("'")
    return said, Config.read(Path(path))


def test_ten_photos_of_two_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    make_photos(Path("photos"))
    said, config = init(capsys, "photos/")
    assert "10 photos of 2 classes" in said
    assert "boxes: none; 'wsol train' and 'wsol localize' need none, 'wsol evaluate' does" in said
    assert "too few photos to hold some out of the training: a class has 5, 10 are needed" in said
    assert f"pretrained weights cannot be had here: {OFFLINE}" in said
    assert said.endswith("written: photos.yaml\nnext: wsol train photos.yaml\n")
    assert config.data.root == Path("photos").resolve(), "it trains from any folder"
    assert (config.data.val_share, config.data.options["test_share"]) == (0, 0)
    assert (config.model.backbone.name, config.model.weights) == ("tiny", "none")
    assert config.train.batch_size == 4


def test_a_config_that_is_there_stays(capsys: pytest.CaptureFixture[str]) -> None:
    make_photos(Path("photos"))
    Path("photos.yaml").write_text("mine\n")
    assert main(["init", "photos"]) == 2
    assert "photos.yaml is there already; --overwrite replaces it" in capsys.readouterr().err
    assert Path("photos.yaml").read_text() == "mine\n"
    init(capsys, "photos", "--out", "new/other.yaml")
    init(capsys, "photos", "--overwrite")


def test_many_photos_and_weights(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "weights_problem", lambda: None)
    names = make_photos(Path("photos"), each=20)
    write_table(Path("photos/boxes.csv"), names)
    said, config = init(capsys, "photos")
    assert "boxes: 40 photos have one (from boxes.csv); they are used to measure, not to train" in said
    assert "too few" not in said
    assert (config.model.backbone.name, config.model.weights) == ("mobilenet_v1", "imagenet")
    assert (config.model.drop.name, config.train.freeze) == ("adl", "blocks3")
    assert config.data.options["test_share"] == 0.2
    assert config.data.val_share == 0.1
    assert config.data.options["annotations"] == Path("photos/boxes.csv").resolve()
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.startswith("  ")}
    assert rows["cat"] == rows["dog"] == ["16", "4", "20"]


def test_a_file_of_weights_gives_the_recipe_for_pretrained_ones(capsys: pytest.CaptureFixture[str]) -> None:
    make_photos(Path("photos"))
    assert main(["init", "photos", "--weights", "mine.pth"]) == 2
    assert capsys.readouterr().err == "wsol: error: mine.pth: no such file of weights\n"
    Path("mine.pth").touch()
    said, config = init(capsys, "photos", "--weights", "mine.pth")
    assert OFFLINE not in said
    assert (config.model.backbone.name, config.model.weights) == (
        "mobilenet_v1",
        str(Path("mine.pth").resolve()),
    )
    assert (config.data.image_size, config.train.freeze) == (192, "blocks3")


def test_boxes_of_too_few_photos(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(Path("boxes.csv"), make_photos(Path("photos"), each=3))
    said, config = init(capsys, "photos", "--annotations", "boxes.csv")
    assert "too few photos to hold some out for a test: a class has 3, 5 are needed" in said
    assert config.data.options["test_share"] == 0


def test_a_coco_file_beside_a_table_of_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    names = make_photos(Path("photos"), ("",), each=6)
    document = {
        "images": [{"id": i, "file_name": name} for i, name in enumerate(names)],
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": i % 2, "bbox": [1, 2, 9, 9]} for i in range(5)
        ],
    }
    document["images"].pop()  # the sixth photo is not listed
    Path("photos/coco.json").write_text(json.dumps(document))
    Path("photos/cameras.csv").write_text("camera,lens\nA,50\n")
    said, config = init(capsys, "photos")
    assert "5 photos of 2 classes" in said
    assert "coco.json does not list 1 of the photos; they are not used" in said
    assert "note: not used as a list of boxes: photos/cameras.csv:1: expected the columns image,label" in said
    assert config.data.options["annotations"].name == "coco.json"


def test_the_layout_of_cub(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said, config = init(capsys, str(birds))
    assert "56 photos of 4 classes (kind: cub)" in said
    assert config.data.name == "cub"
    assert not config.data.options


def test_photos_that_cannot_be_read_are_counted_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    make_photos(Path("photos"))
    Path("photos/cat/page.jpg").write_text("<!doctype html><p>not found</p>")
    whole = Path("photos/cat/0.png").read_bytes()
    Path("photos/dog/cut.png").write_bytes(whole[: len(whole) // 2])
    said, config = init(capsys, "photos")
    assert "10 photos of 2 classes" in said
    assert "cannot be used: 2; 'wsol data check photos' says why; the first is:" in said
    assert "page.jpg" in said
    assert config.data.on_bad_image == "skip"


def test_the_same_photo_for_training_and_for_test_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    names = make_photos(Path("photos"), each=10)
    for i in range(10):
        shutil.copy(f"photos/cat/{i}.png", f"photos/cat/copy{i}.png")
        names.append(f"cat/copy{i}.png")
    write_table(Path("photos/boxes.csv"), names)
    said, config = init(capsys, "photos")
    assert "which is for test" in said
    assert config.data.on_bad_image == "skip"


def test_strange_names_survive(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path("my: photos #1, 'Ü'")
    make_photos(root, ("a: b", "#c"))
    assert main(["init", str(root)]) == 0
    assert capsys.readouterr().out.count("wsol train '") == 1, "quoted for the shell"
    assert Config.read(Path(f"{root}.yaml")).data.root == root.resolve()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda root: None, "no such folder; give the folder that holds your photos"),
        (lambda root: root.mkdir(), "no images; expected"),
        (lambda root: root.write_text("x"), "no such folder"),
        (
            lambda root: make_photos(root, ("",)),
            "5 photos without a class, and training needs one for each",
        ),
        (lambda root: make_photos(root, ("cat",)), "training needs two classes or more, and here is cat"),
        (
            lambda root: [make_photos(root), shutil.copy(root / "cat" / "0.png", root / "stray.png")],
            "to mend first: .*stray.png has no class",
        ),
        (
            lambda root: [write_table(root / name, make_photos(root)) for name in ("a.csv", "b.csv")],
            "a.csv and b.csv both list photos; say which one with --annotations FILE",
        ),
        (
            lambda root: [make_photos(root), (root / "b.csv").write_text("image,label\ncat/9.png,cat\n")],
            "two classes or more",
        ),
    ],
)
def test_what_cannot_be_trained_on_is_one_line(
    make: object, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(Path("photos"))  # type: ignore[operator]
    assert main(["init", "photos"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("wsol: error: ")
    assert re.search(reason, last), last
    assert not Path("photos.yaml").exists()


@pytest.mark.long
@pytest.mark.parametrize("with_boxes", [False, True])
def test_from_photos_to_boxes_by_what_each_command_suggests(
    birds: Path, with_boxes: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten photos of two kinds: init, then what it says, then what that says, until there are boxes."""
    monkeypatch.setattr(first_config, "MOST_EPOCHS", 3)  # the boxes need not be good here
    monkeypatch.setattr(first_config, "FEWEST_EPOCHS", 3)
    names = []
    for folder in sorted((birds / "images").iterdir())[:2]:
        Path("photos", folder.name).mkdir(parents=True)
        for photo in sorted(folder.iterdir())[:5]:
            names.append(f"{folder.name}/{photo.name}")
            shutil.copy(photo, Path("photos", names[-1]))
    if with_boxes:
        write_table(Path("photos/boxes.csv"), names)
    command, typed = "wsol init photos/", []
    while not Path("found/photos/boxes.csv").exists():
        assert main(shlex.split(command)[1:]) == 0
        typed.append(command.split()[1])
        *_, suggested = [line for line in capsys.readouterr().out.splitlines() if "next: " in line] or [""]
        command = suggested.rpartition("next: ")[2].rpartition(", or ")[2]
    assert typed == ["init", "train", *(["evaluate"] if with_boxes else []), "localize"]
    with Path("found/photos/boxes.csv").open() as file:
        assert {row["file"] for row in csv.DictReader(file)} == set(names)
