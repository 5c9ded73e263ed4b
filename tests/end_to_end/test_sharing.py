"""A localizer is packed, handed on and opened elsewhere: the same figures, and nothing of the pack is run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import wsol
from wsol import plugins
from wsol.api.sharing import start_from_pack
from wsol.cli import main
from wsol.errors import CheckpointError, ConfigError, RunFolderError, WsolError
from wsol.notices import WsolNote
from wsol.runs.folder import RunFolder
from wsol.runs.manifest import write_manifest

PROTOCOLS = ["gpca", "wsoleval-v2"]


@pytest.fixture(scope="module")
def evaluated(trained_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = shutil.copytree(trained_once, tmp_path_factory.mktemp("sharing") / "birds")
    wsol.evaluate(run, PROTOCOLS, device="cpu")
    return run


@pytest.fixture(scope="module")
def packed_once(evaluated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wsol.pack(evaluated, tmp_path_factory.mktemp("packs") / "birds", license="mit")


@pytest.fixture
def packed(packed_once: Path, tmp_path: Path) -> Path:
    """A copy elsewhere, which a test may damage."""
    return shutil.copytree(packed_once, tmp_path / "elsewhere" / "birds")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def seal(folder: Path) -> None:
    """Make the manifest fit what lies there now, as someone who means harm would."""
    RunFolder(folder).manifest.unlink()
    write_manifest(RunFolder(folder).manifest, "birds")


def test_pack_load_elsewhere_evaluate_gives_the_same_scores_bit_for_bit(
    evaluated: Path, packed: Path, birds: Path, tmp_path: Path
) -> None:
    before = contents(packed)
    moved = shutil.copytree(birds, tmp_path / "moved")
    wsol.evaluate(packed, PROTOCOLS, data=moved, out=tmp_path / "again" / "birds", device="cpu")
    again = RunFolder(tmp_path / "again" / "birds")
    assert again.scores.read_bytes() == RunFolder(evaluated).scores.read_bytes()
    assert contents(packed) == before, "a pack is never written to"
    assert wsol.Run(again.path).localizer("cpu") is not None
    with pytest.raises(RunFolderError, match=r"birds: not empty; score it again"):
        wsol.evaluate(packed, data=moved, out=again.path, device="cpu")


def test_the_localizer_of_a_pack_is_that_of_the_run(evaluated: Path, packed: Path) -> None:
    ours, theirs = wsol.load(evaluated, device="cpu"), wsol.load(packed, device="cpu")
    assert (ours.classes, ours.protocol, ours.threshold) == (
        theirs.classes,
        theirs.protocol,
        theirs.threshold,
    )
    packed_state = wsol.Run(packed).localizer("cpu").state_dict()
    for name, value in wsol.Run(evaluated).localizer("cpu").state_dict().items():
        assert torch.equal(value, packed_state[name]), name
    assert wsol.Run(packed).name == "birds"
    assert wsol.Run(packed).scores == wsol.Run(evaluated).scores


def test_a_pack_holds_no_path_of_this_machine(packed: Path, birds: Path, evaluated: Path) -> None:
    for name, content in contents(packed).items():
        for path in (birds.parent, evaluated.parent, Path.cwd(), Path.home()):
            assert str(path).encode() not in content or str(path) == "/", (name, path)


def test_a_table_of_boxes_is_named_without_its_path_and_found_in_the_new_data_set(
    trained: Path, birds: Path, tmp_path: Path
) -> None:
    config = trained / "config.yaml"
    own = f"name: folder\n  annotations: {tmp_path}/mine/boxes.csv"
    config.write_text(config.read_text().replace("name: cub", own, 1))
    with pytest.warns(WsolNote, match="not evaluated"):
        pack = wsol.pack(trained, tmp_path / "pack")
    assert str(tmp_path).encode() not in b"".join(contents(pack).values())
    assert wsol.Run(pack).config.data.options["annotations"] == Path("boxes.csv")
    started = wsol.Run(start_from_pack(wsol.Run(pack), birds, tmp_path / "again"))
    assert started.config.data.options["annotations"] == birds / "boxes.csv"


def test_the_card_tells_figures_intervals_baseline_and_threshold(packed: Path) -> None:
    card = RunFolder(packed).card.read_text()
    run = wsol.Run(packed)
    for protocol, scores in run.scores.items():
        assert f"**Protocol `{protocol}`**" in card
        low, high = scores.intervals["gt_known_loc"]
        centre = scores.centre_box[f"gt_known_loc_{scores.threshold_kind}"]
        shown = f"{scores['gt_known_loc']:.2f} [{low:.1f}, {high:.1f}]"
        assert f"| GT-known localization | {shown} | {centre:.2f} |" in card
    assert f"at {run.threshold(run.protocol()):g} of a map's range" in card
    assert "images held out of training" in card
    assert "![" in card
    assert card.startswith("---\nlicense: mit\nlibrary_name: wsol\n")


def test_the_picture_can_be_left_out(evaluated: Path, tmp_path: Path) -> None:
    folder = RunFolder(wsol.pack(evaluated, tmp_path / "pack", picture=False))
    assert not folder.picture.exists()
    assert "![" not in folder.card.read_text()
    folder.require()


def test_a_run_without_scores_says_so_in_its_card(trained: Path, tmp_path: Path) -> None:
    with pytest.warns(WsolNote, match="not evaluated, so the card has no figures"):
        folder = RunFolder(wsol.pack(trained, tmp_path / "pack"))
    assert "**Not measured.**" in folder.card.read_text()
    assert wsol.load(folder.path, device="cpu").threshold == wsol.load(trained, device="cpu").threshold


def test_no_evaluation_is_asked_for_where_nothing_can_be_measured(trained: Path, tmp_path: Path) -> None:
    data = trained / "data.json"
    data.write_text(json.dumps({**json.loads(data.read_text()), "boxed": 0}))
    with pytest.warns(WsolNote, match="so the card has no figures$"):
        wsol.pack(trained, tmp_path / "pack")


def test_scores_of_another_checkpoint_are_refused(evaluated: Path, tmp_path: Path) -> None:
    run = RunFolder(shutil.copytree(evaluated, tmp_path / "run"))
    record = json.loads(run.scores.read_text())
    run.scores.write_text(json.dumps({**record, "checkpoint_digest": "0" * 64}))
    with pytest.raises(RunFolderError, match="so that the card tells the truth"):
        wsol.pack(run.path, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_only_a_pack_is_replaced(evaluated: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(RunFolderError, match="taken: not empty"):
            wsol.pack(evaluated, taken, picture=False, overwrite=overwrite)
    assert (taken / "thesis.tex").read_text() == "precious"
    wsol.pack(evaluated, tmp_path / "pack", picture=False)
    with pytest.raises(RunFolderError, match="--overwrite"):
        wsol.pack(evaluated, tmp_path / "pack", picture=False)
    wsol.pack(evaluated, tmp_path / "pack", picture=False, overwrite=True)


def test_a_flipped_byte_a_missing_file_and_a_pickle_are_one_line(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = RunFolder(packed).packed_weights
    good = weights.read_bytes()
    photo, out = str(tmp_path / "none.jpg"), str(tmp_path / "found")
    command = ["localize", str(packed), photo, "--out", out]

    def refused() -> str:
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    (tmp_path / "none.jpg").write_bytes(b"not looked at")
    weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert "weights.safetensors: damaged or changed" in refused()
    weights.unlink()
    assert "weights.safetensors is missing" in refused()
    weights.write_bytes(good)
    (packed / "model.pkl").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    assert "'model.pkl' is no part of a pack" in refused()
    seal(packed)
    assert "'model.pkl' is no part of a pack" in refused()


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\x80\x04." * 20, (1 << 60).to_bytes(8, "little")])
def test_weights_that_are_none_are_refused(packed: Path, content: bytes) -> None:
    RunFolder(packed).packed_weights.write_bytes(content)
    seal(packed)
    with pytest.raises(CheckpointError, match="not the weights of a pack"):
        wsol.load(packed, device="cpu")


def test_a_pack_stays_as_it_is(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(packed)
    with pytest.raises(RunFolderError, match=r"a pack, which stays as it is; say where to write \(--out\)"):
        wsol.export(packed)
    for verb in ("report", "visualize"):
        assert main([verb, str(packed)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(RunFolderError, match="copy the folder instead"):
        wsol.pack(packed, packed.parent / "other")
    with pytest.raises(RunFolderError, match="choose another --run-dir"):
        RunFolder(packed).claim(resume=True)
    assert contents(packed) == before
    assert main(["compare", str(packed)]) == 0, "its scores are read like those of a run"


def test_a_pack_never_imports_a_module(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that its config or its record names, wherever that lies."""
    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    folder = RunFolder(packed)
    folder.config.write_text(folder.config.read_text().replace("plugins: []", "plugins: [evil]"))
    seal(packed)
    assert wsol.load(packed, device="cpu").classes
    record = {"module": "evil", "file": str(tmp_path / "evil.py"), "sha256": "0" * 64}
    folder.plugins.write_text(json.dumps({"plugins": [{**record, "registered": {"heads": ["spooky"]}}]}))
    seal(packed)
    with pytest.raises(ConfigError, match=r"needs the plugin evil \(heads 'spooky'\).*wsol --plugin evil"):
        wsol.load(packed, device="cpu")


def test_a_plugin_that_is_here_is_enough(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from wsol.registry import PROTOCOLS as REGISTRY

    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(packed)
    record = {"module": "my_rules", "file": "my_rules.py", "sha256": "0" * 64}
    folder.plugins.write_text(json.dumps({"plugins": [{**record, "registered": {"protocols": ["mine"]}}]}))
    seal(packed)
    (tmp_path / "my_rules.py").write_text(
        "from wsol.scoring.protocols import Protocol, register_protocol\n"
        "register_protocol(Protocol('mine', 'for a test'))\n"
    )
    before = dict(REGISTRY.entries())
    try:
        assert main(["compare", str(packed)]) == 2
        assert "needs the plugin my_rules (protocols 'mine')" in capsys.readouterr().err
        assert main(["--plugin", "my_rules", "compare", str(packed)]) == 0
    finally:
        REGISTRY.restore(before)


def test_what_is_no_pack_is_not_pushed(evaluated: Path, packed: Path) -> None:
    with pytest.raises(RunFolderError, match=r"not a pack: make one with `wsol pack RUN"):
        wsol.push(evaluated, "me/birds")
    RunFolder(packed).card.write_text("changed")
    with pytest.raises(WsolError, match="damaged or changed"):
        wsol.push(packed, "me/birds")


def test_a_license_is_an_identifier(evaluated: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected an identifier"):
        wsol.pack(evaluated, tmp_path / "pack", license="mit\nevil: yes")
