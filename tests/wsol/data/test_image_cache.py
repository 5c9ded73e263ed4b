"""Images are decoded once: what is remembered, what makes a file be read again, and what cannot do harm."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from wsol.config import Data
from wsol.data import image_cache
from wsol.data.check import check_dataset
from wsol.data.image import ImageFacts, inspect_image
from wsol.data.image_cache import NAME, ImageCache, cached_sizes
from wsol.data.index import open_dataset, refuse_bad_images
from wsol.data.synthetic.paint import make_dataset
from wsol.errors import DataError
from wsol.records import DataIndex


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("painted") / "birds"
    return make_dataset(out, species=2, train=3, test=2, size=48, progress=False)


@pytest.fixture
def root(painted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(painted, tmp_path / "birds"))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was decoded, by name."""
    count: Counter[str] = Counter()

    def counted(path: Path) -> ImageFacts:
        count[path.name] += 1
        return inspect_image(path)

    monkeypatch.setattr(image_cache, "inspect_image", counted)
    return count


@pytest.fixture
def headers(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose header was read."""
    read: list[Path] = []
    sizes = image_cache.image_sizes

    def noted(paths: Any) -> Any:
        paths = list(paths)
        read.extend(paths)
        return sizes(paths)

    monkeypatch.setattr(image_cache, "image_sizes", noted)
    return read


def start(root: Path, policy: Any = "stop") -> tuple[DataIndex, tuple[str, ...]]:
    """What every training does first."""
    return refuse_bad_images(open_dataset(Data.of("cub", root=root)), policy)


def test_the_second_start_decodes_nothing(root: Path, decoded: Counter[str], headers: list[Path]) -> None:
    first = start(root)
    assert len(decoded) == decoded.total() == 10
    assert len(headers) == 20  # images and segmentations
    assert start(root) == first
    assert decoded.total() == 10
    assert len(headers) == 20


def test_a_changed_file_is_decoded_again_and_no_other(root: Path, decoded: Counter[str]) -> None:
    index, _ = start(root)
    decoded.clear()
    os.utime(index.samples[4].path, ns=(0, 1))
    start(root)
    assert decoded == {index.samples[4].path.name: 1}
    decoded.clear()
    path = index.samples[2].path  # the same time of change, but another size
    changed = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes() + b"\0")
    os.utime(path, ns=(changed, changed))
    start(root)
    assert decoded == {path.name: 1}


def test_a_file_that_breaks_later_is_noticed(root: Path) -> None:
    index, _ = start(root)
    path = index.split("train")[0].path
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=rf"{path}: damaged image"):
        start(root)


def test_a_file_that_could_not_be_read_is_tried_again_each_time(root: Path, decoded: Counter[str]) -> None:
    path = open_dataset(Data.of("cub", root=root)).split("train")[0].path
    whole = path.read_bytes()
    changed = path.stat().st_mtime_ns
    path.write_bytes(bytes(len(whole)))
    os.utime(path, ns=(changed, changed))
    for _ in range(2):
        assert len(start(root, "skip")[1]) == 1
    assert decoded[path.name] == 2
    path.write_bytes(whole)
    os.utime(path, ns=(changed, changed))
    assert start(root)[1] == ()
    assert decoded[path.name] == 3


def test_facts_from_the_cache_are_those_of_the_file(root: Path, tmp_path: Path) -> None:
    odd = tmp_path / "birds" / "odd"
    odd.mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("L", (30, 20)).save(odd / "turned.jpg", exif=exif)
    Image.new("LA", (5, 6)).save(odd / "alpha.png")
    Image.fromarray(np.full((3, 4), 700, np.uint16)).save(odd / "deep.png")
    Image.new("CMYK", (3, 3)).save(odd / "cmyk.jpg")
    Image.new("P", (3, 3)).save(odd / "palette.gif", save_all=True, append_images=[Image.new("P", (3, 3), 1)])
    paths = sorted(odd.iterdir())
    fresh = list(ImageCache(root).inspect(paths))
    assert fresh == [inspect_image(p) for p in paths]
    assert list(ImageCache(root).inspect(paths)) == fresh
    assert cached_sizes(root, paths) == [f.size for f in fresh if isinstance(f, ImageFacts)]


def test_a_moved_data_set_is_still_known(root: Path, decoded: Counter[str]) -> None:
    start(root)
    start(root.rename(root.with_name("elsewhere")))
    assert decoded.total() == 10


@pytest.mark.parametrize("way", ["marked read-only", "cannot be written"])
def test_a_read_only_data_set_is_remembered_in_the_users_folder(
    root: Path, tmp_path: Path, decoded: Counter[str], way: str
) -> None:
    if way == "marked read-only":
        root.chmod(0o555)
    else:
        (root / NAME).mkdir()  # no file can take this name, whoever writes
    start(root)
    start(root)
    assert decoded.total() == 10
    assert not (root / NAME).is_file()
    assert len(list((tmp_path / "cache" / "wsol").iterdir())) == 1
    root.chmod(0o755)


def test_nowhere_to_write_is_no_error(root: Path, tmp_path: Path, decoded: Counter[str]) -> None:
    root.chmod(0o555)
    (tmp_path / "cache").write_text("a file where the cache folder should be")
    start(root)
    start(root)
    assert decoded.total() == 20
    root.chmod(0o755)


def test_a_damaged_cache_is_ignored_and_made_anew(root: Path, decoded: Counter[str]) -> None:
    first = start(root)
    good = (root / NAME).read_bytes()
    damages = {
        "empty": b"",
        "cut": good[: len(good) // 2],
        "flipped": good[:60] + bytes([good[60] ^ 1]) + good[61:],
        "other version": b"wsol images 0\n" + good[14:],
        "text": b"no cache at all",
    }
    for what, content in damages.items():
        (root / NAME).write_bytes(content)
        decoded.clear()
        assert start(root) == first, what
        assert decoded.total() == 10, what
        start(root)
        assert decoded.total() == 10, what
    assert len((root / NAME).read_bytes()) == len(good)


def test_a_writer_that_is_killed_leaves_the_old_cache(
    root: Path, repository: Path, decoded: Counter[str]
) -> None:
    index, _ = start(root)
    before = (root / NAME).read_bytes()
    os.utime(index.samples[0].path, ns=(0, 1))
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from wsol.data.image_cache import ImageCache\n"
        "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)\n"  # all is written, not yet renamed
        "list(ImageCache(Path(sys.argv[1])).inspect([Path(sys.argv[2])]))\n"
    )
    command = [sys.executable, "-c", code, str(root), str(index.samples[0].path)]
    assert subprocess.run(command, cwd=repository, check=False).returncode == -signal.SIGKILL
    assert (root / NAME).read_bytes() == before
    decoded.clear()
    start(root)
    assert decoded.total() == 1


def test_two_writers_at_once_do_no_harm(root: Path, decoded: Counter[str]) -> None:
    paths = [s.path for s in open_dataset(Data.of("cub", root=root)).samples]
    halves = [ImageCache(root), ImageCache(root)]  # both have read the same cache
    threads = [
        threading.Thread(target=lambda c=cache, p=part: list(c.inspect(p)))
        for cache, part in zip(halves, (paths[:6], paths[4:]), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start(root)
    decoded.clear()
    start(root)
    assert decoded.total() == 0


def test_what_another_process_learnt_meanwhile_is_kept(root: Path, decoded: Counter[str]) -> None:
    paths = [s.path for s in open_dataset(Data.of("cub", root=root)).samples]
    one, two = ImageCache(root), ImageCache(root)
    list(one.inspect(paths[:5]))
    list(two.inspect(paths[5:]))
    decoded.clear()
    start(root)
    assert decoded.total() == 0


def test_an_interrupted_check_keeps_what_it_has_learnt(root: Path, decoded: Counter[str]) -> None:
    paths = [s.path for s in open_dataset(Data.of("cub", root=root)).samples]
    facts = ImageCache(root).inspect(paths)
    for _ in range(4):
        next(facts)
    facts.close()  # type: ignore[attr-defined]
    decoded.clear()
    start(root)
    assert decoded.total() == 6


def test_check_reads_every_file_and_fills_the_cache(root: Path, decoded: Counter[str]) -> None:
    for _ in range(2):
        decoded.clear()
        assert check_dataset(root).faults == ()
        assert decoded.total() == 20  # images and segmentations
    decoded.clear()
    start(root)
    assert decoded.total() == 0


def test_a_fault_that_only_check_can_see_is_not_hidden_by_the_cache(root: Path) -> None:
    """A file that rots on the disk keeps its size and its time of change."""
    path = start(root)[0].split("train")[0].path
    changed = path.stat().st_mtime_ns
    path.write_bytes(bytes(path.stat().st_size))
    os.utime(path, ns=(changed, changed))
    assert any(fault.startswith(f"{path}: not an image") for fault in check_dataset(root).faults)
    with pytest.raises(DataError, match=f"{path}: not an image"):
        start(root)


def test_files_that_are_gone_are_forgotten(root: Path) -> None:
    index, _ = start(root)
    size = (root / NAME).stat().st_size
    for sample in index.samples[:5]:
        sample.path.unlink()
    os.utime(index.samples[5].path, ns=(0, 1))
    list(ImageCache(root).inspect([index.samples[5].path]))
    assert (root / NAME).stat().st_size < size


def test_the_cache_is_no_part_of_the_data_set(root: Path) -> None:
    index, _ = start(root)
    digest = index.digest()
    assert (root / NAME).is_file()
    assert check_dataset(root).notes == ()
    folder = open_dataset(Data.of("folder", root=root / "images"))
    assert (root / "images" / NAME).is_file()
    assert check_dataset(root / "images", "folder").notes == ()
    assert open_dataset(Data.of("folder", root=root / "images")).digest() == folder.digest()
    (root / NAME).unlink()
    assert start(root)[0].digest() == digest
