"""`wsol localize` and the three lines of Python: the same boxes, in every format."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsol import load
from wsol.cli import main
from wsol.data.photos import list_photos
from wsol.errors import ConfigError
from wsol.runs.checkpoint import load_checkpoint, save_checkpoint
from wsol.runs.folder import RunFolder
from wsol.views.box_files import BoxJournal, overlay_path


@pytest.fixture(scope="module")
def photos(birds: Path) -> list[Path]:
    return sorted((birds / "images").rglob("*.jpg"))[:5]


def test_every_format_says_the_same_as_python(se_run: Path, photos: list[Path], tmp_path: Path) -> None:
    coco_module = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    out = tmp_path / "found"
    assert main(["localize", str(se_run), *map(str, photos), "--out", str(out), "--topk", "3"]) == 0

    find = load(se_run)
    record = json.loads((out / "boxes.json").read_text())
    with (out / "boxes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    coco = coco_module.COCO(str(out / "boxes_coco.json"))
    categories = {c["id"]: c["name"] for c in coco.loadCats(coco.getCatIds())}

    assert [i["file"] for i in record["images"]] == [p.name for p in photos]
    assert len(rows) == 3 * len(photos)
    for number, (photo, image) in enumerate(zip(photos, record["images"], strict=True)):
        expected = find(photo, topk=3)
        annotations = coco.loadAnns(coco.getAnnIds(imgIds=[number + 1]))
        assert (image["width"], image["height"]) == expected.size == Image.open(photo).size
        for rank, one in enumerate(expected.found):
            from_json, row, annotation = image["boxes"][rank], rows[3 * number + rank], annotations[rank]
            assert from_json["class"] == row["class"] == categories[annotation["category_id"]] == one.name
            assert from_json["score"] == pytest.approx(one.score, abs=1e-5)
            assert float(row["score"]) == pytest.approx(one.score, abs=1e-5)
            assert from_json["box"] == pytest.approx(list(one.box))
            assert [float(row[k]) for k in ("x0", "y0", "x1", "y1")] == pytest.approx(list(one.box), abs=0.01)
            x, y, w, h = annotation["bbox"]
            assert [x, y, x + w, y + h] == pytest.approx(list(one.box))
        with Image.open(out / "overlays" / f"{photo.name}.png") as overlay:
            assert max(overlay.size) >= 500


def test_scores_are_probabilities_best_first(se_run: Path, photos: list[Path]) -> None:
    found = load(se_run)(photos[0], topk=99).found
    scores = [one.score for one in found]
    assert len(found) == 4  # as many as there are classes
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) == pytest.approx(1, abs=1e-5)


def test_a_class_can_be_asked_for_by_either_name(se_run: Path, photos: list[Path]) -> None:
    find = load(se_run)
    name = find.classes[2]
    shown = name.partition(".")[2].replace("_", " ").upper()
    for asked in (name, shown):
        (one,) = find(photos[0], class_name=asked).found
        assert one.name == name
    with pytest.raises(ConfigError, match="does not know the class 'ostrich'"):
        find(photos[0], class_name="ostrich")


def test_photos_come_as_paths_arrays_and_pillow_images(se_run: Path, photos: list[Path]) -> None:
    find = load(se_run)
    with Image.open(photos[0]) as image:
        array = np.asarray(image.convert("RGB"))
        results = [find(photos[0]), find(str(photos[0])), find(image), find(array)]
    assert len({r.box for r in results}) == 1
    with pytest.raises(TypeError, match="float64"):
        find(array / 255.0)  # type: ignore[arg-type]


def test_a_batch_gives_what_single_photos_give(se_run: Path, photos: list[Path]) -> None:
    find = load(se_run)
    for together, photo in zip(find.batch(photos), photos, strict=True):
        alone = find(photo)
        assert [f.label for f in together.found] == [f.label for f in alone.found]
        np.testing.assert_allclose(together.box, alone.box)


def test_the_threshold_moves_the_box(se_run: Path, photos: list[Path]) -> None:
    areas = [load(se_run, threshold=t)(photos[0]).box.area for t in (0.0, 0.9)]
    assert areas[1] < areas[0]
    with pytest.raises(ConfigError, match="outside 0 to 1"):
        load(se_run, threshold=1.5)


def test_folders_mean_every_picture_below_them(tmp_path: Path) -> None:
    for name in ("b.png", "a.JPG", "sub/c.webp", "notes.txt", ".hidden.png", ".git/d.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert list(list_photos([tmp_path])[0]) == ["a.JPG", "b.png", "sub/c.webp"]
    assert list(list_photos([tmp_path, tmp_path / "b.png", tmp_path / "b.png"])[0]) == [
        "a.JPG",
        "b.png",
        "sub/c.webp",
        "b-2.png",
        "b-3.png",
    ]


def test_a_folder_with_results_is_not_overwritten_silently(
    se_run: Path, photos: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    command = ["localize", str(se_run), str(photos[0]), "--out", str(tmp_path)]
    assert main(command) == 2
    assert "not empty" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    assert main([*command, "--overwrite"]) == 0
    assert (tmp_path / "mine.txt").read_text() == "precious"
    assert (tmp_path / "boxes.json").is_file()


def test_mistakes_end_before_anything_is_written(
    se_run: Path, photos: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    empty = tmp_path / "empty"
    empty.mkdir()
    for extra, message in (
        (["--class", "ostrich"], "does not know the class"),
        (["--topk", "0"], "topk 0"),
        (["--threshold", "2"], "outside 0 to 1"),
        ([str(empty)], "no pictures in this folder"),
    ):
        assert main(["localize", str(se_run), str(photos[0]), *extra, "--out", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert main(["localize", str(empty), str(photos[0]), "--out", str(out)]) == 2
    assert "not a run folder" in capsys.readouterr().err
    assert not out.exists()


def test_a_name_of_255_bytes_stops_nothing(se_run: Path, photos: list[Path], tmp_path: Path) -> None:
    folder, out = tmp_path / "photos", tmp_path / "out"
    folder.mkdir()
    names = ["a" * 251 + ".jpg", "é" * 125 + "b.jpg", "c.jpg"]
    for name in names:
        shutil.copyfile(photos[0], folder / name)
    assert main(["localize", str(se_run), str(folder), "--out", str(out)]) == 0
    assert {i["file"] for i in json.loads((out / "boxes.json").read_text())["images"]} == set(names)
    assert all(overlay_path(out, name).is_file() for name in names)


def interrupt_at_third(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    """Run `localize` and end it when two photos are done."""
    add = BoxJournal.add
    done: list[str] = []

    def stop(journal: BoxJournal, name: str, *photo: object) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(name)
        add(journal, name, *photo)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(BoxJournal, "add", stop)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            raise SystemExit(main(command))


def test_photos_that_changed_after_a_kill_are_looked_at_again(
    se_run: Path, photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another folder has photos of the same names."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder, order in zip(folders, (photos[:3], [photos[1], photos[0], photos[2]]), strict=True):
        folder.mkdir()
        for name, photo in zip("abc", order, strict=True):
            shutil.copy2(photo, folder / f"{name}.jpg")
    expected = {f.name: [load(se_run)(f / f"{n}.jpg").box for n in "abc"] for f in folders}
    assert expected["first"] != expected["second"], "else this test shows nothing"

    def boxes(folder: Path, out: Path) -> list[list[float]]:
        assert main(["localize", str(se_run), str(folder), "--out", str(out)]) == 0
        images = json.loads((out / "boxes.json").read_text())["images"]
        return [image["boxes"][0]["box"] for image in images]

    for out in (tmp_path / "other folder", tmp_path / "other content"):
        interrupt_at_third(monkeypatch, ["localize", str(se_run), str(folders[0]), "--out", str(out)])
        if out.name == "other content":
            for name in "abc":
                shutil.copyfile(folders[1] / f"{name}.jpg", folders[0] / f"{name}.jpg")
        again = boxes(folders[1] if out.name == "other folder" else folders[0], out)
        np.testing.assert_allclose(again, expected["second"], rtol=1e-4)


def test_a_run_that_was_trained_on_after_a_kill_is_not_mixed(
    trained: Path,
    photos: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["localize", str(trained), *map(str, photos), "--out", str(tmp_path / "out")]
    interrupt_at_third(monkeypatch, command)
    store = RunFolder(trained).checkpoints
    state = load_checkpoint(store.best)
    save_checkpoint(store.best, state | {"epoch": state["epoch"] + 1})
    assert main(command) == 2
    assert "begun with other settings (checkpoint 'best.ckpt, epoch " in capsys.readouterr().err


def test_a_killed_localize_goes_on_where_it_was(
    se_run: Path, photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["localize", str(se_run), *map(str, photos)]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    out = tmp_path / "killed"
    interrupt_at_third(monkeypatch, [*command, "--out", str(out)])
    add = BoxJournal.add
    looked_at: list[str] = []

    def note_name(journal: BoxJournal, name: str, *rest: object) -> None:
        looked_at.append(name)
        add(journal, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(BoxJournal, "add", note_name)
    assert main([*command, "--out", str(out)]) == 0
    assert looked_at == [p.name for p in photos[2:]]
    for name in ("boxes.json", "boxes.csv", "boxes_coco.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (out / BoxJournal.NAME).exists()
