"""A user's own images: folders, CSV tables and COCO files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import Image

from wsol.cli import main
from wsol.config import Data
from wsol.data.check import check_dataset
from wsol.data.faults import Faults
from wsol.data.image import ImageFacts
from wsol.data.image_cache import ImageCache
from wsol.data.index import open_dataset
from wsol.data.sets.folder import Folder
from wsol.errors import ConfigError, DataError
from wsol.records import Box


def put(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), "grey").save(root / name)
    return root


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return put(tmp_path / "photos", *(f"{c}/{i}.png" for c in ("wren", "robin") for i in range(10)))


def test_one_folder_for_each_class(photos: Path) -> None:
    put(photos, "robin/more/deep.JPG", ".cache/x.png")
    (photos / "robin" / "notes.txt").write_text("not an image")
    index = Folder().read(photos, Faults())
    assert index.classes == ("robin", "wren")
    assert len(index.samples) == 21
    assert {index.classes[s.label] for s in index.samples if "robin/" in s.name} == {"robin"}
    assert all(s.boxes == () and s.size == (40, 30) for s in index.samples)


def test_test_share_is_of_each_class_and_seeded(photos: Path) -> None:
    index = Folder(test_share=0.3).read(photos, Faults())
    for label in (0, 1):
        assert sum(s.label == label for s in index.split("test")) == 3
        assert sum(s.label == label for s in index.split("train")) == 7
    assert Folder(test_share=0.3).read(photos, Faults()) == index
    assert Folder(test_share=0.3, seed=1).read(photos, Faults()) != index
    assert not Folder(test_share=0).read(photos, Faults()).split("test")
    with pytest.raises(ConfigError, match=r"test_share: 1\.5 is outside 0 to 1"):
        Folder(test_share=1.5).read(photos, Faults())


def test_train_val_and_test_folders(tmp_path: Path) -> None:
    root = put(tmp_path, "train/a/1.png", "train/b/2.png", "val/a/3.png", "test/b/4.png")
    index = Folder().read(root, Faults())
    assert index.classes == ("a", "b")
    assert {s.name: s.split for s in index.samples} == {
        "train/a/1.png": "train",
        "train/b/2.png": "train",
        "val/a/3.png": "val",
        "test/b/4.png": "test",
    }


def test_val_stands_for_test_where_that_is_missing(tmp_path: Path) -> None:
    index = Folder().read(put(tmp_path, "train/a/1.png", "val/a/3.png"), Faults())
    assert [s.split for s in index.samples] == ["train", "test"]


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    index = Folder(test_share=0).read(put(tmp_path, "test/1.png", "exam/1.png"), Faults())
    assert index.classes == ("exam", "test")


def test_csv_gives_boxes_labels_and_splits(photos: Path) -> None:
    table = photos / "boxes.csv"
    table.write_text(
        "image,label,split,x0,y0,x1,y1\n"
        "robin/0.png,Robin,train,1,2,10,20\r\n"
        "robin/0.png,Robin,train,-5,20,39.5,99\n"
        'wren/0.png,"Wren, winter",test,,,,\n'
    )
    index = Folder(table).read(photos, Faults())
    assert index.classes == ("Robin", "Wren, winter")
    robin, wren = index.samples
    assert robin.boxes == (Box(1, 2, 10, 20), Box(0, 20, 39.5, 30))  # the second is clipped
    assert robin.split == "train"
    assert wren.boxes == ()
    assert wren.split == "test"


def test_csv_leaves_the_rest_to_the_folders(photos: Path) -> None:
    table = photos / "boxes.csv"
    rows = [f"robin/{i}.png,1,2,3,4" for i in range(10)]
    table.write_text("\n".join(["image,x0,y0,x1,y1", *rows]))
    index = Folder(table, test_share=0.2).read(photos, Faults())
    assert index.classes == ("robin",)
    assert len(index.split("test")) == 2


def coco(photos: Path, **changes: object) -> Path:
    document = {
        "images": [
            {"id": 5, "file_name": "robin/0.png", "width": 40, "height": 30},
            {"id": 9, "file_name": "wren/3.png", "split": "test"},
        ],
        "annotations": [
            {"id": 1, "image_id": 5, "category_id": 2, "bbox": [1, 2, 10, 20.5]},
            {"id": 2, "image_id": 9, "category_id": 1, "bbox": [0, 0, 50, 10]},
            {"id": 3, "image_id": 9, "category_id": 2, "bbox": [0, 0, 50, 10], "iscrowd": 1},
        ],
        "categories": [{"id": 1, "name": "wren"}, {"id": 2, "name": "robin"}],
    }
    path = photos / "coco.json"
    path.write_text(json.dumps(document | changes))
    return path


def test_coco_gives_boxes_and_labels(photos: Path) -> None:
    index = Folder(coco(photos), test_share=0).read(photos, Faults())
    assert index.classes == ("robin", "wren")
    robin, wren = index.samples
    assert (robin.boxes, robin.split) == ((Box(1, 2, 11, 22.5),), "train")
    assert (wren.boxes, wren.split) == ((Box(0, 0, 40, 10),), "test")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: empty; expected a header"),
        ("file,label\n", ":1: expected the columns image,label"),
        ("image,x0,y0\n", ":1: expected the columns"),
        ("image,image\n", ":1: expected the columns"),
        ("image,label\nrobin/0.png\n", ":2: 1 cells where the header has 2"),
        ("image,label\n../0.png,a\n", r":2: path '\.\./0\.png' leads out of the data set"),
        ("image,label\n/etc/0.png,a\n", ":2: path '/etc/0.png' leads out"),
        ("image,label\n\n,a\n", ":3: empty path"),
        ("image,x0,y0,x1,y1\nrobin/0.png,1,2,3,\n", ":2: '' is not a number"),
        ("image,x0,y0,x1,y1\nrobin/0.png,1,2,nan,4\n", ":2: 'nan' is not a number"),
        ("image,x0,y0,x1,y1\nrobin/0.png,5,2,5,4\n", r":2: box \(5, 2, 5, 4\) is empty"),
        ("image,x0,y0,x1,y1\nrobin/0.png,50,2,60,4\n", ":2: box .* lies outside the image of 40 x 30"),
        ("image,split\nrobin/0.png,training\n", ":2: split 'training': expected train, val, test"),
        ("image,label\nrobin/0.png,a\nrobin/0.png,b\n", ":3: label 'b' for an image that had label 'a'"),
        (
            "image,split\na/0.png,train\na/0.png,test\n",
            ":3: split 'test' for an image that had split 'train'",
        ),
        ("image\n0.png\n", r":2: 0\.png has no class"),
        ('image,label\n"robin/0.png,a\n', ":2: not a row of a CSV table"),
        ("image,label\nrobin/0.png,\xff\n", ":2: not UTF-8 text"),
    ],
)
def test_faults_of_a_csv_have_file_and_line(photos: Path, text: str, message: str) -> None:
    table = photos / "boxes.csv"
    table.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"boxes\.csv" + message):
        Folder(table).read(photos, Faults())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": None}, ":1: not a COCO file: no list 'images'"),
        ({"images": [3]}, r": images\[0\]: not an object"),
        (
            {"images": [{"id": "x", "file_name": "a"}]},
            r": images\[0\]: id: expected a whole number, got \"'x'\"",
        ),
        ({"images": [{"id": 1, "file_name": "../a"}]}, r": images\[0\]: path '\.\./a' leads out"),
        ({"categories": [{"id": 1, "name": "a"}] * 2}, r": categories\[1\]: id 1 is listed twice"),
        ({"annotations": [{"image_id": 7, "category_id": 1}]}, r": annotations\[0\]: unknown image_id 7"),
        (
            {"annotations": [{"image_id": 5, "category_id": 1, "bbox": [1, 2, 0, 3]}]},
            r": annotations\[0\]: box of width 0",
        ),
        (
            {"annotations": [{"image_id": 5, "category_id": c, "bbox": [1, 2, 3, 3]} for c in (1, 2)]},
            r": annotations\[1\]: label 'robin' for an image that had label 'wren'",
        ),
    ],
)
def test_faults_of_a_coco_file_say_where(photos: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=r"coco\.json" + message):
        Folder(coco(photos, **changes)).read(photos, Faults())


def test_broken_json_has_a_line(photos: Path) -> None:
    path = photos / "coco.json"
    path.write_text('{"images": [],\n "annotations": [}')
    with pytest.raises(DataError, match=r"coco\.json:2: not JSON"):
        Folder(path).read(photos, Faults())


def test_what_is_missing_is_said(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        Folder().read(tmp_path / "nowhere", Faults())
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no images; expected \S+/CLASS/"):
        Folder().read(tmp_path / "empty", Faults())
    with pytest.raises(DataError, match=r"boxes\.csv: cannot be read: No such file"):
        Folder(photos / "boxes.csv").read(photos, Faults())
    with pytest.raises(DataError, match=r"a \.csv table or a COCO \.json file"):
        Folder(photos / "boxes.xml").read(photos, Faults())
    with pytest.raises(DataError, match=r"loose\.png has no class"):
        Folder().read(put(tmp_path / "loose", "loose.png"), Faults())


def test_class_folders_may_be_links(photos: Path, tmp_path: Path) -> None:
    put(tmp_path / "store", "owls/1.png", "owls/2.png", "owls/deep/3.png")
    (photos / "owl").symlink_to(tmp_path / "store" / "owls")
    (photos / "wren" / "more").symlink_to(tmp_path / "store")
    index = Folder().read(photos, Faults())
    assert index.classes == ("owl", "robin", "wren")
    assert [s.name for s in index.samples if s.name.startswith("owl/")] == [
        "owl/1.png",
        "owl/2.png",
        "owl/deep/3.png",
    ]
    assert sum(index.classes[s.label] == "wren" for s in index.samples) == 13
    assert all(s.size == (40, 30) for s in index.samples)


def test_links_in_a_circle_end(photos: Path) -> None:
    before = Folder().read(photos, Faults())
    (photos / "wren" / "up").symlink_to(photos)
    (photos / "wren" / "self").symlink_to(photos / "wren")
    (photos / "robin" / "wren").symlink_to(photos / "wren")
    faults = Faults(collect=True)
    index = Folder().read(photos, faults)
    assert faults.found == faults.notes == []
    names = [s.name for s in index.samples]
    assert len(set(names)) == len(names)
    assert {s.name for s in before.samples} < set(names)
    assert index.classes == ("robin", "wren")


def test_a_class_folder_that_leads_nowhere_is_a_fault(photos: Path, tmp_path: Path) -> None:
    (photos / "owl").symlink_to(tmp_path / "gone")
    (photos / "loop").symlink_to(photos / "loop")
    with pytest.raises(DataError, match="a link whose target cannot be reached"):
        Folder().read(photos, Faults())
    faults = check_dataset(photos).faults
    assert set(faults[:2]) == {
        f"{photos / n}: a link whose target cannot be reached" for n in ("owl", "loop")
    }


def test_a_folder_without_permission_is_a_fault(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def refuse(path: Path) -> object:  # the tests may run as root, who may read everything
        if Path(path).name == "wren":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match=rf"{photos}/wren: this folder cannot be read: Permission denied"):
        Folder().read(photos, Faults())
    assert f"{photos}/wren: this folder cannot be read: Permission denied" in check_dataset(photos).faults


def test_a_class_folder_without_images_is_a_note(photos: Path) -> None:
    (photos / "owl" / "deep").mkdir(parents=True)
    (photos / "owl" / "deep" / "image.heic").write_bytes(b"")
    faults = Faults()
    assert Folder().read(photos, faults).classes == ("robin", "wren")
    assert faults.notes == [f"{photos}/owl: no images in this folder"]


def test_names_that_are_not_utf_8(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = os.fsdecode(os.fsencode(photos) + b"/caf\xe9")
    put(Path(folder), os.fsdecode(b"1\xff.png"), "2.png")
    index = open_dataset(Data.of("folder", root=photos, val_share=0.2))
    assert index.classes == ("caf\\xe9", "robin", "wren")
    assert {s.name for s in index.samples if s.label == 0} == {r"caf\xe9/1\xff.png", r"caf\xe9/2.png"}
    assert all(s.path.is_file() and s.size == (40, 30) for s in index.samples)
    assert len(index.digest()) == 64
    paths = [s.path for s in index.samples]
    facts = list(ImageCache(photos).inspect(paths))
    assert facts == list(ImageCache(photos).inspect(paths))
    assert {f.size for f in facts if isinstance(f, ImageFacts)} == {(40, 30)}
    Path(folder, "empty.png").write_bytes(b"")
    Path(folder, os.fsdecode(b"stray\xff.txt")).write_bytes(b"")
    assert main(["data", "check", str(photos)]) == 1
    out = capsys.readouterr().out
    assert "empty.png: empty file" in out
    assert "in no list" in out


def test_two_categories_of_one_name_are_noted(photos: Path) -> None:
    twins = [{"id": 1, "name": "wren"}, {"id": 2, "name": "wren"}]
    path = coco(photos, categories=twins)
    faults = Faults()
    assert Folder(path).read(photos, faults).classes == ("wren",)
    assert f"{path}: categories 1 and 2 are both called 'wren': they become one class" in faults.notes


@pytest.mark.parametrize("name", ["boxes.csv", "boxes.json"])
def test_an_annotation_file_that_is_a_pipe_is_refused(photos: Path, name: str) -> None:
    os.mkfifo(photos / name)
    with pytest.raises(DataError, match=rf"{name}: not a regular file"):
        Folder(photos / name).read(photos, Faults())
