"""A refined localizer is packed with the model that gives its classes, and opened elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import wsol
from tests.helpers.fake_hub import running_hub
from wsol import plugins
from wsol.cli import main
from wsol.errors import ConfigError, RunFolderError
from wsol.models.classifier.opening import open_classifier
from wsol.notices import WsolNote
from wsol.runs.folder import RunFolder
from wsol.runs.manifest import write_manifest

PROTOCOLS = ["gpca", "danet"]  # by one test image, and by ten crops
LIGHT: dict[str, Any] = {
    "model": {"backbone": "tiny", "weights": "none", "head": {"name": "foreground", "channels": 8}},
    "train": {"epochs": 1, "batch_size": 8, "lr": 0.02, "device": "cpu"},
    "data": {"workers": 0},
}


@pytest.fixture(scope="module")
def refined(trained_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluated run, refined from one that is then gone."""
    folder = tmp_path_factory.mktemp("refined")
    source = shutil.copytree(trained_once, folder / "first_stage")
    run = wsol.refine(source, folder / "birds", config=LIGHT)
    shutil.rmtree(source)
    wsol.evaluate(run, PROTOCOLS, device="cpu")
    return run.path


@pytest.fixture(scope="module")
def packed_once(refined: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wsol.pack(refined, tmp_path_factory.mktemp("packs") / "birds")


@pytest.fixture
def packed(packed_once: Path, tmp_path: Path) -> Path:
    """A copy elsewhere, which a test may damage."""
    return shutil.copytree(packed_once, tmp_path / "elsewhere" / "birds")


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def seal(folder: Path) -> None:
    """Make the manifests fit what lies there now, as someone who means harm would."""
    for path in (folder / "source", folder):
        if path.is_dir():
            RunFolder(path).manifest.unlink(missing_ok=True)
            write_manifest(RunFolder(path).manifest, "birds")


def assert_same_answers(one: Path, other: Path) -> None:
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    ours, theirs = wsol.Run(one).any_localizer("cpu"), wsol.Run(other).any_localizer("cpu")
    labels = torch.tensor([0, 1])
    with torch.no_grad():
        expected, got = ours(images), theirs(images)
        assert torch.equal(expected.logits, got.logits)
        assert torch.equal(ours.maps_for(expected, labels), theirs.maps_for(got, labels))


def test_pack_load_elsewhere_evaluate_gives_the_same_scores_bit_for_bit(
    refined: Path, packed: Path, birds: Path, tmp_path: Path
) -> None:
    before = contents(packed)
    assert {"source.json", "source/weights.safetensors", "source/manifest.json"} < before.keys()
    moved = shutil.copytree(birds, tmp_path / "moved")
    wsol.evaluate(packed, PROTOCOLS, data=moved, out=tmp_path / "again" / "birds", device="cpu")
    again = RunFolder(tmp_path / "again" / "birds")
    assert again.scores.read_bytes() == RunFolder(refined).scores.read_bytes()
    assert contents(packed) == before
    assert_same_answers(refined, packed)
    assert_same_answers(refined, again.path)
    assert_same_answers(refined, wsol.pack(again.path, tmp_path / "second", picture=False))
    photo = next(birds.rglob("*.jpg"))
    ours, theirs = (wsol.load(path, device="cpu")(photo) for path in (refined, packed))
    assert (ours.name, ours.score, ours.box) == (theirs.name, theirs.score, theirs.box)


def test_it_holds_no_path_of_this_machine(packed: Path, refined: Path, birds: Path) -> None:
    for name, content in contents(packed).items():
        for path in (birds.parent, refined.parent, Path.cwd()):
            assert str(path).encode() not in content, (name, path)
    assert json.loads((packed / "source.json").read_text())["path"] == "first_stage"


def test_the_card_says_where_boxes_and_classes_come_from(packed: Path) -> None:
    card = RunFolder(packed).card.read_text()
    assert "trained on the maps of another localizer (CAM)" in card
    assert "Its classes come from that localizer, which lies in the folder `source`." in card
    assert "It names what is in a\nphoto" in card


@pytest.mark.parametrize("name", ["weights.safetensors", "config.yaml", "manifest.json", "data.json"])
def test_any_flipped_byte_of_the_source_is_one_line(
    packed: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = packed / "source" / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert main(["localize", str(packed), "none.jpg", "--out", str(tmp_path / "found")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"source/{name}: damaged or changed" in error


def test_files_too_many_and_missing_files_are_refused(packed: Path) -> None:
    evil = packed / "source" / "model.pkl"
    evil.write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    with pytest.raises(RunFolderError, match=r"'model\.pkl' is no part of a pack"):
        wsol.Run(packed)
    seal(packed)
    with pytest.raises(RunFolderError, match=r"'model\.pkl' is no part of a pack"):
        wsol.Run(packed)
    evil.unlink()
    seal(packed)
    (packed / "source" / "manifest.json").unlink()
    with pytest.raises(RunFolderError, match=r"source/manifest\.json is missing in this pack"):
        wsol.Run(packed)
    record = json.loads((packed / "manifest.json").read_text())
    del record["files"]["source/manifest.json"]  # so that what lies in the folder would be no pack
    (packed / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(RunFolderError, match="'source' is no part of a pack"):
        wsol.Run(packed)
    shutil.rmtree(packed / "source")
    with pytest.raises(RunFolderError, match="not a run folder"):
        wsol.load(packed, device="cpu")


def test_the_source_never_imports_a_module(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    source = RunFolder(packed / "source")
    good = source.config.read_text()
    source.config.write_text(good.replace("plugins: []", "plugins: [evil]"))
    record = {"module": "evil", "file": str(tmp_path / "evil.py"), "sha256": "0" * 64, "registered": {}}
    source.plugins.write_text(json.dumps({"plugins": [record]}))
    seal(packed)
    assert wsol.load(packed, device="cpu").classes
    source.config.write_text("classifier: {name: 'evil:function'}\n" + good)
    seal(packed)
    with pytest.raises(ConfigError, match=r"needs the classifier evil:function, Python code"):
        wsol.load(packed, device="cpu")


def test_the_hub_takes_it_and_gives_it_back(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is not installed")
    with running_hub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        files = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", hub.token)
        wsol.push(packed, "me/birds")
        assert_same_answers(packed, wsol.Run("hf://me/birds").path)
        hub.repositories["me/birds"][-1]["source/evil.py"] = b"boom"
        with pytest.raises(RunFolderError, match=r"'source/evil\.py' is no part of a pack; nothing was down"):
            wsol.load("hf://me/birds")


def test_a_pack_can_be_refined_and_packed_again(packed: Path, birds: Path, tmp_path: Path) -> None:
    twice = wsol.refine(packed, tmp_path / "twice", config=LIGHT, set={"data.root": birds})
    with pytest.warns(WsolNote, match="not evaluated"):
        pack = wsol.pack(twice, tmp_path / "pack")
    assert (pack / "source" / "source" / "weights.safetensors").is_file()
    assert_same_answers(twice.path, pack)
    content = (pack / "source" / "source" / "weights.safetensors").read_bytes()
    (pack / "source" / "source" / "weights.safetensors").write_bytes(content[:-1] + b"!")
    with pytest.raises(RunFolderError, match=r"source/source/weights\.safetensors: damaged"):
        wsol.Run(pack)


def test_where_the_source_knows_no_classes_one_network_is_enough(birds: Path, tmp_path: Path) -> None:
    settings = {
        "data": {"root": str(birds), "image_size": 64, "resize": 72, "workers": 0},
        "model": {"backbone": "tiny", "weights": "none", "head": {"name": "ddt", "images": 8}},
        "train": {"batch_size": 8, "device": "cpu"},
    }
    ddt = wsol.train(settings, tmp_path / "ddt")
    run = wsol.refine(ddt, tmp_path / "refined", config=LIGHT)
    wsol.evaluate(run, ["gpca"], device="cpu")
    pack = wsol.pack(run, tmp_path / "pack")
    assert not (pack / "source").exists()
    again = RunFolder(tmp_path / "again" / "refined")
    wsol.evaluate(pack, ["gpca"], data=birds, out=again.path, device="cpu")
    assert again.scores.read_bytes() == run.folder.scores.read_bytes()
    card = RunFolder(pack).card.read_text()
    assert "A localizer without classes" in card
    assert "folder `source`" not in card


def refine_classifier(name: str, classes: list[str], birds: Path, folder: Path, **weights: Any) -> Path:
    """The refined run of a plain classifier that knows the birds by name."""
    found = wsol.from_classifier(name, "cam", classes=classes, image_size=64, device="cpu", **weights)
    wsol.evaluate(found, ["gpca"], data=birds, out=folder / "plain", device="cpu", batch=8)
    return wsol.refine(folder / "plain", folder / "refined", config=LIGHT).path


def test_the_classes_may_come_from_a_public_classifier(birds: Path, tmp_path: Path) -> None:
    name, classes, file = (
        "torchvision:shufflenet_v2_x0_5",
        list(wsol.open_dataset(birds).classes),
        "weights.pth",
    )
    torch.save(open_classifier(name, "none", classes).model.state_dict(), tmp_path / file)
    refined = refine_classifier(name, classes, birds, tmp_path, weights=tmp_path / file)
    scores = wsol.evaluate(refined, ["gpca"], device="cpu")
    assert "top1_loc" in scores["gpca"]
    pack = wsol.pack(refined, tmp_path / "pack", picture=False)
    before = RunFolder(refined).scores.read_bytes()
    for gone in (refined, tmp_path / "plain"):
        shutil.rmtree(gone)
    (tmp_path / file).unlink()
    again = RunFolder(tmp_path / "again" / "refined")
    wsol.evaluate(pack, ["gpca"], data=birds, out=again.path, device="cpu")
    assert again.scores.read_bytes() == before
    for path, content in contents(pack).items():
        assert str(tmp_path).encode() not in content, path


def test_a_classifier_that_is_code_cannot_be_packed(birds: Path, tmp_path: Path) -> None:
    classes = [*wsol.open_dataset(birds).classes, "another"]
    refined = refine_classifier("tests.helpers.classifiers:SmallNet", classes, birds, tmp_path)
    with pytest.raises(ConfigError, match=r"its classes come from the classifier tests.*:SmallNet, Python"):
        wsol.pack(refined, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()
