"""A data set of painted birds, in the layout of CUB-200-2011.

It needs no download, and it is hard where weakly supervised localization is hard: species of a family differ
only in small parts, so a classifier can name a bird from its head or wing, while a localizer has to find all
of it.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from tqdm import tqdm

from wsol.data.hierarchy import CSV_COLUMNS
from wsol.data.synthetic.anatomy import Anatomy, place
from wsol.data.synthetic.birds import paint_bird, strike_pose
from wsol.data.synthetic.brush import over, soften
from wsol.data.synthetic.scenes import paint_scene
from wsol.data.synthetic.species import SPECIES_LIMIT, Species, roster
from wsol.errors import ConfigError, DataError

# Daylight: noon, morning, evening and overcast, as a factor on red, green and blue.
LIGHTS = ((1.0, 1.0, 1.0), (1.05, 1.0, 0.93), (1.10, 0.99, 0.84), (0.93, 0.98, 1.05))
JPEG_QUALITY = 92
AT_ONCE = 16  # pictures that a process is given


@dataclass(frozen=True)
class _Picture:
    """One line of images.txt: what is painted, and what it is called."""

    number: int
    species: int
    index: int
    train: bool
    stem: str


def make_dataset(
    out: Path,
    *,
    species: int = 12,
    train: int = 40,
    test: int = 20,
    size: int = 160,
    seed: int = 0,
    progress: bool = True,
    processes: int = 1,
) -> Path:
    """Paint a data set into the folder `out`, which must not exist or be empty, and return it.

    species: from 2 to 200; three to a family while the families last. train, test: images of each species.
    size: long side of the images in pixels; they are from 3:4 to 4:3. processes: how many paint side by side;
    more than one only from a program that can be imported, since each imports it again.

    Beside the files of CUB-200-2011 there are `segmentations/`, laid out as CUB publishes them (grey PNG, 255
    on the bird), and `hierarchy.csv`. A box is the tight box of that segmentation. The same arguments give
    the same bytes (with the same OpenCV on the same kind of processor), whatever the order of painting: a
    picture depends on its species, its index, `size` and `seed` alone. The folder appears complete or not at
    all.

    Raises ConfigError for an argument out of range, DataError where `out` is taken or cannot be written.
    """
    out = Path(out)
    _check(species, train, test, size, seed)
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise DataError.at(out, None, "already exists and is not empty; choose a new folder")
    draft = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        draft.mkdir(parents=True)
        _write(draft, roster(species), train, test, size, seed, progress, processes)
        if out.is_dir():
            out.rmdir()
        draft.rename(out)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError.at(out, None, f"cannot be written: {error.strerror}") from error
        raise
    return out


def _check(species: int, train: int, test: int, size: int, seed: int) -> None:
    for name, value, low, high in (
        ("species", species, 2, SPECIES_LIMIT),
        ("train", train, 1, 9999),
        ("test", test, 0, 9999),
        ("size", size, 32, 4096),
        ("seed", seed, 0, 2**63),
    ):
        if not low <= value <= high:
            raise ConfigError(f"{name} must be from {low} to {high}, not {value}")


def _pictures(birds: tuple[Species, ...], train: int, test: int) -> Iterator[_Picture]:
    number = 0
    for label, bird in enumerate(birds):
        for index in range(train + test):
            number += 1
            stem = f"{_folder(label, bird)}/{bird.name}_{index + 1:04d}_{number}"
            yield _Picture(number, label, index, index < train, stem)


def _folder(label: int, bird: Species) -> str:
    return f"{label + 1:03d}.{bird.name}"


def _write(
    root: Path,
    birds: tuple[Species, ...],
    train: int,
    test: int,
    size: int,
    seed: int,
    progress: bool,
    processes: int,
) -> None:
    for label, bird in enumerate(birds):
        for kind in ("images", "segmentations"):
            (root / kind / _folder(label, bird)).mkdir(parents=True)
    pictures = list(_pictures(birds, train, test))
    work = partial(_paint_file, root, birds, size, seed)
    painted = map(work, pictures) if processes == 1 else _in_processes(work, pictures, processes)
    bar = tqdm(painted, "painting birds", len(pictures), unit="img", disable=None if progress else True)
    boxes = list(bar)

    def table(name: str, lines: Iterator[str]) -> None:
        (root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")

    table("images.txt", (f"{p.number} {p.stem}.jpg" for p in pictures))
    table("image_class_labels.txt", (f"{p.number} {p.species + 1}" for p in pictures))
    table("train_test_split.txt", (f"{p.number} {int(p.train)}" for p in pictures))
    table("bounding_boxes.txt", (f"{p.number} {b}" for p, b in zip(pictures, boxes, strict=True)))
    names = [(i + 1, _folder(i, bird), bird.family) for i, bird in enumerate(birds)]
    table("classes.txt", (f"{i} {name}" for i, name, _ in names))
    rows = (f"{i},{name},{family.plural},{family.order}" for i, name, family in names)
    table("hierarchy.csv", iter([",".join(CSV_COLUMNS), *rows]))


def _in_processes(work: partial[str], pictures: Iterable[_Picture], processes: int) -> Iterator[str]:
    """The work on every picture, in order. Spawned, not forked: this process may hold threads."""
    context = multiprocessing.get_context("spawn")
    # OpenCV's own threads would only take the cores from the other processes.
    with ProcessPoolExecutor(processes, context, cv2.setNumThreads, (1,)) as pool:
        yield from pool.map(work, pictures, chunksize=AT_ONCE)


def _paint_file(root: Path, birds: tuple[Species, ...], size: int, seed: int, picture: _Picture) -> str:
    """Write a picture and its segmentation; returns the box as CUB-200-2011 writes it."""
    rng = np.random.default_rng([seed, picture.species, picture.index])
    image, mask = paint_picture(rng, birds[picture.species], size)
    jpeg = cv2.imencode(".jpg", image[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY))[1]
    (root / "images" / f"{picture.stem}.jpg").write_bytes(jpeg.tobytes())
    png = cv2.imencode(".png", mask)[1]
    (root / "segmentations" / f"{picture.stem}.png").write_bytes(png.tobytes())
    return " ".join(f"{v:.1f}" for v in cv2.boundingRect(mask))


def paint_picture(rng: np.random.Generator, species: Species, size: int) -> tuple[np.ndarray, np.ndarray]:
    """One picture of a species, its long side `size`.

    Returns the RGB image, (H, W, 3) uint8, and the segmentation of the bird, (H, W) uint8 of 0 and 255.
    """
    aspect = np.exp(rng.uniform(-1, 1) * np.log(4 / 3))
    width, height = round(size * min(1.0, aspect)), round(size * min(1.0, 1 / aspect))
    habits = species.family.habits
    action, scene = habits[rng.integers(len(habits))]
    pose = strike_pose(rng, action)
    whole = np.array([width, height], dtype=float)
    room = whole * rng.uniform(0.30, 0.78)
    corner = rng.uniform(0.03, 0.97 - room / whole) * whole
    bird = place(species.family.shape, pose, corner, corner + room)

    picture = paint_scene(rng, scene, bird, height, width)
    layer = paint_bird(rng, species, bird, height, width)
    if action in ("swim", "wade"):
        picture = _reflect(picture, bird, layer)
    picture = over(picture, layer)
    light = np.array(LIGHTS[rng.integers(len(LIGHTS))], np.float32) * rng.uniform(0.88, 1.08)
    grain = rng.standard_normal((height, width, 1), np.float32) * rng.uniform(0.5, 2.5)
    image = np.clip(picture * light + grain, 0, 255).astype(np.uint8)
    return image, np.where(layer[1][..., 0] >= 128 / 255, np.uint8(255), np.uint8(0))


def _reflect(picture: np.ndarray, bird: Anatomy, layer: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The bird upside down in the water below it, faint and broken by waves."""
    h, w = picture.shape[:2]
    rows, columns = np.indices((h, w), dtype=np.float32)
    below = rows - np.float32(bird.waterline)
    wave = np.sin(below * 1.1) * np.minimum(below * 0.05, 1.5)
    mirrored = (columns + wave, np.float32(bird.waterline) - below)
    paint, alpha = (cv2.remap(part, *mirrored, cv2.INTER_LINEAR) for part in layer)
    weight = np.where(below > 0, 0.42 * np.exp(-below / (0.5 * h)), 0)[..., None]
    blur = 0.006 * h
    return over(picture, (soften(paint, blur) * weight, soften(alpha, blur)[..., None] * weight))
