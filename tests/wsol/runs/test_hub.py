"""Packs go to the hub and come back by the real huggingface_hub, against a small hub on 127.0.0.1."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.fake_hub import FakeHub, running_hub
from wsol.errors import ConfigError, RunFolderError, WsolError
from wsol.notices import WsolNote
from wsol.runs.folder import RunFolder
from wsol.runs.hub import download, local_folder, upload
from wsol.runs.manifest import write_manifest

NAME = "me/birds"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is not installed")
    with running_hub() as hub:  # as HF_ENDPOINT and HF_HOME do, which are read when the package is imported
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        files = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", hub.token)
        yield hub


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = RunFolder(tmp_path / "pack")
    folder.path.mkdir()
    folder.config.write_text("model: {}\n")
    folder.packed_weights.write_bytes(bytes(range(256)) * 40)
    folder.card.write_text("---\nlibrary_name: wsol\n---\n# A pack\n")
    write_manifest(folder.manifest, "birds")
    return folder.path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_pack_comes_back_as_it_went(hub: FakeHub, pack: Path) -> None:
    assert upload(pack, NAME, private=False) == f"{hub.endpoint}/{NAME}"
    found = local_folder(f"hf://{NAME}")
    assert contents(found) == contents(pack)
    assert RunFolder(found).require() == "birds"
    assert local_folder(Path(f"hf://{NAME}")) == found  # a Path has lost one of the slashes


def test_a_revision_is_one_state_of_it(hub: FakeHub, pack: Path) -> None:
    upload(pack, NAME, private=False)
    first = hub.revision(NAME, "main")
    assert first is not None
    old = contents(pack)
    RunFolder(pack).card.write_text("# Another\n")
    write_manifest(RunFolder(pack).manifest, "birds")
    upload(pack, NAME, private=False)
    assert contents(local_folder(f"hf://{NAME}@{first[0]}")) == old
    assert contents(local_folder(f"hf://{NAME}@main")) == contents(pack)


def test_pushing_leaves_no_other_file_on_the_hub(hub: FakeHub, pack: Path) -> None:
    upload(pack, NAME, private=False)
    hub.put(NAME, evil_pkl=b"boom")
    upload(pack, NAME, private=False)
    assert set(hub.repositories[NAME][-1]) == {*contents(pack), ".gitattributes"}


def test_a_pickle_on_the_hub_is_refused_before_anything_is_downloaded(hub: FakeHub, pack: Path) -> None:
    upload(pack, NAME, private=False)
    hub.put(NAME, evil_pkl=b"boom")
    hub.asked.clear()
    with pytest.raises(RunFolderError, match=r"'evil\.pkl' is no part of a pack; nothing was downloaded"):
        download(NAME)
    assert not any("resolve" in asked for asked in hub.asked)


def test_what_is_no_pack_is_refused(hub: FakeHub, pack: Path) -> None:
    upload(pack, NAME, private=False)
    hub.put(NAME, manifest_json=None)
    with pytest.raises(RunFolderError, match=r"not a pack of wsol: it has no manifest\.json"):
        download(NAME)


def test_a_file_that_was_changed_on_the_hub_is_found(hub: FakeHub, pack: Path) -> None:
    upload(pack, NAME, private=False)
    hub.put(NAME, weights_safetensors=b"other")
    with pytest.raises(RunFolderError, match=r"weights\.safetensors: damaged or changed"):
        RunFolder(download(NAME)).require()


def test_unknown_names_and_revisions_are_told_apart(hub: FakeHub, pack: Path) -> None:
    with pytest.raises(RunFolderError, match=r"hf://me/birds: not on the hub, or private; check the name"):
        download(NAME)
    upload(pack, NAME, private=False)
    with pytest.raises(RunFolderError, match="hf://me/birds@v9: the hub has no such revision"):
        download(NAME, "v9")


def test_a_token_that_may_not_write_is_told(
    hub: FakeHub, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(RunFolderError, match=r"me/birds: .* log in first \(hf auth login\)"):
        upload(pack, NAME, private=False)


def test_without_network_what_was_downloaded_is_used(
    hub: FakeHub, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    upload(pack, NAME, private=False)
    before = download(NAME)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.warns(WsolNote, match="the hub cannot be reached; using what was downloaded before"):
        assert download(NAME) == before
    with pytest.raises(RunFolderError, match="hf://me/other: the hub cannot be reached, and it was not"):
        download("me/other")
    with pytest.raises(
        RunFolderError, match=r"me/birds: the hub cannot be reached, or .*; check the network"
    ):
        upload(pack, NAME, private=False)


@pytest.mark.parametrize("address", ["hf://me", "hf://", "hf://a/b/c", "hf://a/b@", "hf://a b/c", "hf:/x"])
def test_a_wrong_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="write hf://owner/name"):
        local_folder(address)


@pytest.mark.parametrize("name", ["birds", "a/b/c", "../x/y", "hf://me/birds"])
def test_a_wrong_name_is_refused(pack: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="write owner/name"):
        upload(pack, name, private=False)


def test_a_missing_package_is_named(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    with pytest.raises(WsolError, match=r"pip install 'wsol\[hub\]'"):
        upload(pack, NAME, private=False)


def test_other_places_are_left_alone(tmp_path: Path) -> None:
    assert local_folder(tmp_path) == tmp_path
    assert local_folder("hf") == Path("hf")
