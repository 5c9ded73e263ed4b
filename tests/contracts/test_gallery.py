"""The gallery of the documentation shows every method, and its page is what its script writes."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpca.readings import READINGS
from scripts.written_part import END, begin
from wsol.config import Config
from wsol.config_file import config_from_dict
from wsol.registry import ATTENTIONS, DROPS, HEADS, TRANSFORMS, Registry

LARGEST = 400_000  # bytes of a picture


@pytest.fixture(scope="module")
def gallery(repository: Path) -> Iterator[ModuleType]:
    """scripts/gallery.py as a module."""
    spec = importlib.util.spec_from_file_location("gallery_script", repository / "scripts" / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery_script"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gallery_script"]


@pytest.fixture(scope="module")
def configs(gallery: ModuleType) -> dict[str, Config]:
    """The config of every row, by its name. A refined row names its source as `wsol refine` does."""
    made = {}
    for method in (m for group in gallery.METHODS.values() for m in group):
        settings = method.settings(Path("birds"))
        if method.refines:
            settings["refine"] = {"source": "runs/cam"}
        made[method.name] = config_from_dict(settings)
    return made


def own(registry: Registry) -> set[str]:
    """The names of the package's own components, without those that other tests register."""
    entries = registry.entries().items()
    return {name for name, entry in entries if entry.factory.__module__.startswith(("wsol.", "gpca."))}


def test_every_component_of_the_package_has_a_row(gallery: ModuleType, configs: dict[str, Config]) -> None:
    models = [config.model for config in configs.values()]
    assert {m.head.name for m in models} == own(HEADS)
    assert {m.drop.name for m in models} == own(DROPS)
    transforms = [t.name for config in configs.values() for t in config.train.transforms]
    assert set(transforms) == own(TRANSFORMS)
    shown = {m.attention.name for m in models}
    assert shown | set(gallery.LEFT_OUT) == own(ATTENTIONS)
    assert not shown & set(gallery.LEFT_OUT)
    readings = {m.attention.options.get("reading") for m in models if m.attention.name == "gpca"}
    assert readings == set(READINGS)


def test_no_two_rows_share_a_run_folder(gallery: ModuleType) -> None:
    methods = {m.name: m.folder for group in gallery.METHODS.values() for m in group}
    assert len(set(methods.values())) == len(methods)
    for method in (m for group in gallery.METHODS.values() for m in group):
        for name in (method.refines, method.weights_of):
            assert not name or gallery.method_of(name)


def test_the_page_has_a_figure_for_every_row_and_a_picture_for_every_group(gallery: ModuleType) -> None:
    written = gallery.PAGE.read_text().partition(begin("gallery.py"))[2].partition(END)[0]
    rows = re.findall(r"^\| ([^|*]+) \| \d+\.\d \[", written, flags=re.MULTILINE)
    assert rows == [m.name for group in gallery.METHODS.values() for m in group]
    for group in gallery.METHODS:
        picture = gallery.PICTURES / f"gallery-{group}.jpg"
        assert f"(images/{picture.name})" in written
        assert 20_000 < picture.stat().st_size < LARGEST


def test_the_page_is_written_between_its_marks(
    gallery: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "gallery.md"
    page.write_text(f"# Before\n\n{begin('gallery.py')}\nold\n{END}\n\nafter\n")
    monkeypatch.setattr(gallery, "PAGE", page)
    monkeypatch.setattr(gallery, "table", lambda rows: "| new |")
    for _ in range(2):  # the second time changes nothing
        gallery.write_page({"methods": []})
        text = page.read_text()
        assert text.startswith("# Before\n")
        assert text.endswith("\n\nafter\n")
        assert "old" not in text
        assert text.count("| new |") == 1
