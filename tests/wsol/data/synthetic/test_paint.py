"""The synthetic data set on disk: CUB's layout, exact boxes and masks, the same bytes for the same seed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cv2
import numpy as np
import pytest

import wsol.data.synthetic.paint as paint_module
from wsol.data.hierarchy import read_hierarchy_csv
from wsol.data.synthetic.families import FAMILIES
from wsol.data.synthetic.paint import make_dataset, paint_picture
from wsol.data.synthetic.species import Species, roster
from wsol.errors import ConfigError, DataError

SPECIES, TRAIN, TEST, SIZE = 5, 3, 2, 80


def make(out: Path, seed: int = 0, train: int = TRAIN, test: int = TEST, processes: int = 1) -> Path:
    counts = {"species": SPECIES, "train": train, "test": test}
    return make_dataset(out, **counts, size=SIZE, seed=seed, progress=False, processes=processes)


def digests(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def table(root: Path, name: str) -> dict[str, list[str]]:
    rows = [line.split(" ") for line in (root / name).read_text().splitlines()]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("synthetic") / "birds")


def test_the_layout_is_cubs(root: Path) -> None:
    assert {path.name for path in root.iterdir()} == {
        "images",
        "segmentations",
        "images.txt",
        "image_class_labels.txt",
        "bounding_boxes.txt",
        "train_test_split.txt",
        "classes.txt",
        "hierarchy.csv",
    }
    names = table(root, "images.txt")
    labels, split = table(root, "image_class_labels.txt"), table(root, "train_test_split.txt")
    classes = table(root, "classes.txt")
    assert list(names) == [str(i + 1) for i in range(SPECIES * (TRAIN + TEST))]
    assert names.keys() == labels.keys() == split.keys() == table(root, "bounding_boxes.txt").keys()
    assert list(classes) == [str(i + 1) for i in range(SPECIES)]
    assert sum(int(flag) for (flag,) in split.values()) == SPECIES * TRAIN
    for number, (name,) in names.items():
        (label,) = labels[number]
        folder, file = name.split("/")
        assert folder == classes[label][0]
        assert folder.startswith(f"{int(label):03d}.")
        assert file.startswith(folder[4:] + "_0")
        assert (root / "images" / name).is_file()
        assert (root / "segmentations" / name).with_suffix(".png").is_file()
    assert len(list(root.rglob("*.jpg"))) == len(list(root.rglob("*.png"))) == len(names)


def test_a_box_is_the_tight_box_of_its_mask(root: Path) -> None:
    boxes = table(root, "bounding_boxes.txt")
    for number, (name,) in table(root, "images.txt").items():
        image = cv2.imread(str(root / "images" / name))
        mask = cv2.imread(str((root / "segmentations" / name).with_suffix(".png")), cv2.IMREAD_UNCHANGED)
        assert image is not None
        assert mask is not None
        assert mask.ndim == 2
        assert mask.shape == image.shape[:2]
        assert set(np.unique(mask)) == {0, 255}
        rows, columns = np.nonzero(mask)
        tight = [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1]
        assert [float(v) for v in boxes[number]] == tight


@pytest.mark.parametrize("bird", roster(42)[::3], ids=lambda bird: bird.family.name)
def test_every_bird_is_whole_and_of_a_fair_size(bird: Species) -> None:
    for seed in range(12):
        image, mask = paint_picture(np.random.default_rng(seed), bird, 96)
        height, width = mask.shape
        assert image.shape == (height, width, 3)
        assert max(height, width) == 96
        assert 3 / 4 - 0.02 <= width / height <= 4 / 3 + 0.02
        x, y, w, h = cv2.boundingRect(mask)
        assert x >= 1
        assert y >= 1
        assert x + w <= width - 1
        assert y + h <= height - 1
        assert 0.22 <= max(w / width, h / height) <= 0.80
        assert image[mask > 0].std() > 5


def test_the_hierarchy_file_reads_back(root: Path) -> None:
    names = [name for (name,) in table(root, "classes.txt").values()]
    tree = read_hierarchy_csv(root / "hierarchy.csv", names)
    birds = roster(SPECIES)
    assert [tree.names[1][i] for i in tree.labels("family")] == [bird.family.plural for bird in birds]
    assert [tree.names[2][i] for i in tree.labels("order")] == [bird.family.order for bird in birds]


def test_the_same_seed_gives_the_same_bytes_in_any_order(root: Path, tmp_path: Path) -> None:
    assert digests(make(tmp_path / "again")) == digests(root)
    assert digests(make(tmp_path / "together", processes=2)) == digests(root)
    other = digests(make(tmp_path / "other", seed=1))
    changed = {name for name, digest in digests(root).items() if other[name] != digest}
    assert changed == {n for n in other if n.endswith((".jpg", ".png"))} | {"bounding_boxes.txt"}
    birds = roster(SPECIES)
    lines = list(table(root, "images.txt").values())
    for number in reversed(range(len(lines))):
        rng = np.random.default_rng([0, number // (TRAIN + TEST), number % (TRAIN + TEST)])
        mask = paint_picture(rng, birds[number // (TRAIN + TEST)], SIZE)[1]
        path = (root / "segmentations" / lines[number][0]).with_suffix(".png")
        written = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert written is not None
        assert np.array_equal(mask, written)


def test_more_images_leave_the_others_as_they_are(root: Path, tmp_path: Path) -> None:
    larger = make(tmp_path / "larger", test=TEST + 2)

    def pictures(folder: Path) -> set[bytes]:
        return {path.read_bytes() for path in folder.rglob("*.jpg")}

    assert pictures(root) < pictures(larger)


def test_the_scene_tells_nothing_of_the_species() -> None:
    """Painted with the same random numbers, two species of a family differ on the bird alone (and where water
    mirrors it)."""
    for first in roster(42)[::3]:
        second = next(b for b in roster(42) if b.family is first.family and b is not first)
        for seed in range(4):
            (a, mask), (b, _) = (paint_picture(np.random.default_rng(seed), s, 96) for s in (first, second))
            around = cv2.dilate(mask, np.ones((5, 5), np.uint8)) > 0
            below = np.logical_or.accumulate(around, axis=0)
            wet = any(scene == "water" for _, scene in first.family.habits)
            assert (a == b)[~(below if wet else around)].all()


def test_an_occupied_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "birds").mkdir()
    note = tmp_path / "birds" / "note.txt"
    note.write_text("mine")
    with pytest.raises(DataError, match="birds: already exists and is not empty; choose a new folder"):
        make(tmp_path / "birds")
    with pytest.raises(DataError, match="already exists"):
        make(note)
    assert note.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["birds"]


def test_an_empty_folder_is_taken_and_parents_are_made(tmp_path: Path) -> None:
    (tmp_path / "birds").mkdir()
    assert (make(tmp_path / "birds", train=1, test=0) / "images.txt").is_file()
    assert (make(tmp_path / "a" / "b" / "birds", train=1, test=0) / "classes.txt").is_file()


@pytest.mark.parametrize(
    ("fault", "raised", "reason"),
    [
        (OSError(28, "No space left on device"), DataError, "birds: cannot be written: No space left"),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
def test_a_broken_run_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
    raised: type[BaseException],
    reason: str | None,
) -> None:
    calls = 0

    def failing(rng: np.random.Generator, species: Species, size: int) -> tuple[np.ndarray, np.ndarray]:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise fault
        return paint_picture(rng, species, size)

    monkeypatch.setattr(paint_module, "paint_picture", failing)
    with pytest.raises(raised, match=reason):
        make(tmp_path / "birds")
    assert calls == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("species", 1), ("species", 201), ("train", 0), ("test", -1), ("size", 8), ("seed", -1)],
)
def test_arguments_out_of_range_are_named(tmp_path: Path, name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be from .* not {value}"):
        make_dataset(tmp_path / "birds", progress=False, **{name: value})
    assert list(tmp_path.iterdir()) == []


def test_all_families_can_be_met() -> None:
    assert {bird.family.name for bird in roster(200)} == {family.name for family in FAMILIES}
