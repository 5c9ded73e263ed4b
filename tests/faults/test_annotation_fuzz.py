"""Whatever stands in an annotation file: an index, or a DataError that names the file and the line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsol.data.check import check_dataset
from wsol.data.faults import Faults
from wsol.data.sets.cub import FILES, Cub
from wsol.data.sets.folder import Folder
from wsol.data.synthetic.paint import make_dataset
from wsol.errors import DataError
from wsol.records import Box, DataIndex

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

cells = st.one_of(
    st.integers(-2, 12).map(str),
    st.floats(width=32).map(str),
    st.sampled_from(
        ["nan", "inf", "1e999", "1_0", "٣", "../x", "/abs", ".", "a/b.jpg", "train", "", '"', "\0"]
    ),
    st.text(max_size=8),
)
lines = st.lists(cells, max_size=7).map(" ".join)
text_files = st.one_of(
    st.binary(max_size=200),
    st.lists(lines, max_size=12).map(lambda rows: "\n".join(rows).encode("utf-8", "surrogatepass")),
)


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("painted") / "birds"
    return make_dataset(out, species=2, train=2, test=1, size=48, progress=False)


@pytest.fixture(scope="module")
def fuzzed(painted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(painted, tmp_path_factory.mktemp("fuzzed") / "birds"))


def attempt(load: Callable[[], DataIndex]) -> DataIndex | str:
    """The index, or the message of the one error that is allowed."""
    try:
        return load()
    except DataError as error:
        return str(error)


def is_sound(index: DataIndex) -> bool:
    """What an index promises to everyone after it."""
    names = [s.name for s in index.samples]
    return (
        len(set(names)) == len(names)
        and all(0 <= s.label < len(index.classes) for s in index.samples)
        and all(s.path.is_relative_to(index.root) and ".." not in s.path.parts for s in index.samples)
        and all(box.area > 0 for s in index.samples for box in s.boxes)
        and all(box == box.clip(*s.size) for s in index.samples if s.size for box in s.boxes)
        and all(s.split in ("train", "val", "test") for s in index.samples)
        and all(isinstance(box, Box) for s in index.samples for box in s.boxes)
    )


@FUZZ
@given(st.sampled_from(FILES), text_files, st.booleans())
def test_cub_files(painted: Path, fuzzed: Path, name: str, content: bytes, appended: bool) -> None:
    original = (painted / name).read_bytes()
    for other in FILES:  # a failed example must not leave its file to the next
        shutil.copy(painted / other, fuzzed / other)
    (fuzzed / name).write_bytes(original + content if appended else content)
    result = attempt(lambda: Cub().read(fuzzed, Faults()))
    if isinstance(result, str):
        # What is missing has no line: all rows of a table, or the row of a class in the hierarchy.
        where = r"/\w+\.(txt|csv)(:\d+: |: no rows; |: no row for class )"
        assert re.match(re.escape(str(fuzzed)) + where, result), result
        assert check_dataset(fuzzed).faults, "a check must not pass what a run refuses"
    else:
        assert is_sound(result)


@FUZZ
@given(text_files, st.sampled_from(["", "image\n", "image,label\n", "image,label,split,x0,y0,x1,y1\n"]))
def test_csv_files(painted: Path, tmp_path: Path, content: bytes, header: str) -> None:
    path = tmp_path / "boxes.csv"
    path.write_bytes(header.encode() + content.replace(b" ", b","))
    result = attempt(lambda: Folder(path).read(painted / "images", Faults()))
    if isinstance(result, str):
        assert re.match(rf"{re.escape(str(path))}(:\d+: |: no images; )", result), result
    else:
        assert is_sound(result)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 12), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
ids = st.one_of(st.integers(0, 3), values)
files = st.one_of(st.sampled_from(["a/b.jpg", "c/d.jpg", "../x"]), values)
boxes = st.one_of(st.lists(st.floats(-9, 99), min_size=4, max_size=4), values)
documents = st.fixed_dictionaries(
    {},
    optional={
        "images": st.lists(st.fixed_dictionaries({"id": ids, "file_name": files}), max_size=4) | values,
        "categories": st.lists(st.fixed_dictionaries({"id": ids, "name": values}), max_size=4) | values,
        "annotations": st.lists(
            st.fixed_dictionaries({"image_id": ids, "category_id": ids, "bbox": boxes}), max_size=4
        )
        | values,
    },
)


@FUZZ
@given(st.one_of(st.binary(max_size=100), st.one_of(documents, values).map(lambda d: json.dumps(d).encode())))
def test_coco_files(painted: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "coco.json"
    path.write_bytes(content)
    result = attempt(lambda: Folder(path).read(painted / "images", Faults()))
    if isinstance(result, str):
        where = r"(:\d+: |: (images|annotations|categories)\[\d+\]: |: no images; |: \S+ has no class)"
        assert re.match(re.escape(str(path)) + where, result), result
    else:
        assert is_sound(result)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"images": ' + b"9" * 5000 + b"}"])
def test_json_that_is_meant_to_break_the_parser(painted: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "coco.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"coco\.json:1: not"):
        Folder(path).read(painted / "images", Faults())
