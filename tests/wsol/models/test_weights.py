"""Weights files: what loads, what is refused, and what the report says."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from wsol.errors import CheckpointError, ConfigError
from wsol.models.weights import Normalisation, Weights, WeightsReport, download, file_digest, read_state_dict

NORMALISATION = Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), "told so")


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), last=nn.Conv2d(4, 2, 1))
    )


def pretrained() -> dict[str, Tensor]:
    torch.manual_seed(1)
    return {
        name: torch.rand_like(t) if t.is_floating_point() else t + 7
        for name, t in network().state_dict().items()
    }


def save(path: Path, state: Any) -> Path:
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return path


def load(path: Path, allow_missing: tuple[str, ...] = (), **options: Any) -> tuple[nn.Module, WeightsReport]:
    net = network()
    return net, Weights(str(path), allow_missing).load(net, NORMALISATION, **options).report


@pytest.mark.parametrize("name", ["net.pth", "net.safetensors"])
def test_loads_a_file_and_reports_it(tmp_path: Path, name: str) -> None:
    state = pretrained()
    path = save(tmp_path / name, {**state, "fc.weight": torch.zeros(5, 2)})
    net, report = load(path)
    for key, value in net.state_dict().items():
        assert torch.equal(value, state[key]), key
    assert set(report.loaded) == set(state)
    assert report.missing == ()
    assert report.left_over == ("fc.weight",)
    assert report.origin == str(path)
    assert report.sha256 == file_digest(path)
    assert report.to_dict()["normalisation"]["mean"] == (0.1, 0.2, 0.3)
    assert "loaded 9 tensors" in str(report)
    assert "left over: fc.weight" in str(report)
    assert "0.1/0.2/0.3" in str(report)
    assert "told so" in str(report)


@pytest.mark.parametrize("wrapper", ["state_dict", "model"])
def test_takes_off_wrappers_and_prefixes(tmp_path: Path, wrapper: str) -> None:
    state = pretrained()
    content = {"epoch": 3, wrapper: {f"module.{key}": value for key, value in state.items()}}
    net, _ = load(save(tmp_path / "net.pth", content))
    assert torch.equal(net.state_dict()["conv.weight"], state["conv.weight"])


def test_half_precision_is_cast(tmp_path: Path) -> None:
    state = {k: v.half() if v.is_floating_point() else v for k, v in pretrained().items()}
    net, _ = load(save(tmp_path / "net.pth", state))
    assert net.state_dict()["conv.weight"].dtype == torch.float32
    assert torch.equal(net.state_dict()["conv.weight"], state["conv.weight"].float())


def test_renamed_tensors_are_reported_by_their_names_in_the_file(tmp_path: Path) -> None:
    state = {key.replace("conv.", "stem."): value for key, value in pretrained().items()}
    del state["stem.bias"]
    path = save(tmp_path / "net.pth", state)

    def rename(name: str) -> str:
        return name.replace("conv.", "stem.")

    net, report = load(path, ("stem.bias",), name_in_file=rename)
    assert torch.equal(net.state_dict()["conv.weight"], state["stem.weight"])
    assert report.missing == ("stem.bias",)


def test_a_missing_layer_needs_leave(tmp_path: Path) -> None:
    state = {key: value for key, value in pretrained().items() if not key.startswith("last.")}
    path = save(tmp_path / "net.pth", state)
    with pytest.raises(CheckpointError, match=r"lacks last\.weight, last\.bias; .*allow_missing: \[last\]"):
        load(path)
    net, report = load(path, ("last",))
    assert report.missing == ("last.weight", "last.bias")
    assert torch.equal(net.state_dict()["last.weight"], network().state_dict()["last.weight"])
    with pytest.raises(CheckpointError, match=r"lacks last\.bias"):
        load(path, ("last.weight",))
    with pytest.raises(CheckpointError, match="lacks"):
        load(path, ("conv",))
    with pytest.raises(ConfigError, match=r"no layer 'lst'; did you mean 'last'\?"):
        load(path, ("lst",))


def test_the_parameters_that_hold_pretrained_values_are_told(tmp_path: Path) -> None:
    state = {key: value for key, value in pretrained().items() if not key.startswith("last.")}
    net = network()
    loaded = Weights(str(save(tmp_path / "n.pth", state)), ("last",)).load(net, NORMALISATION)
    held = {id(p) for p in loaded.parameters}
    assert {n for n, p in net.named_parameters() if id(p) in held} == {
        "conv.weight",
        "conv.bias",
        "norm.weight",
        "norm.bias",
    }


def test_old_files_without_the_step_counter_load(tmp_path: Path) -> None:
    state = pretrained()
    del state["norm.num_batches_tracked"]
    _, report = load(save(tmp_path / "net.pth", state))
    assert report.missing == ()


def test_wrong_shapes_are_named(tmp_path: Path) -> None:
    state = {**pretrained(), "conv.weight": torch.zeros(4, 1, 3, 3)}
    with pytest.raises(CheckpointError, match=r"shapes: conv\.weight \(4, 1, 3, 3\) for \(4, 3, 3, 3\)"):
        load(save(tmp_path / "net.pth", state))


def test_a_checkpoint_of_another_network(tmp_path: Path) -> None:
    path = save(tmp_path / "net.pth", {"encoder.0.weight": torch.zeros(3)})
    with pytest.raises(CheckpointError, match=r"'encoder\.0\.weight', this one with 'conv\.weight'; try it"):
        load(path, hint="try it")


class Attack:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


def test_a_file_that_would_run_code_is_refused_and_does_not(tmp_path: Path) -> None:
    trace = tmp_path / "was_here"
    path = save(tmp_path / "net.pth", {"conv.weight": Attack(trace)})
    with pytest.raises(CheckpointError, match="refused: it is damaged, or it holds more than tensors"):
        load(path)
    assert not trace.exists()


@pytest.mark.parametrize("content", [[torch.zeros(3)], {"epoch": 3}, {}, torch.zeros(3), {"model": {"a": 1}}])
def test_what_is_no_state_dict(tmp_path: Path, content: Any) -> None:
    with pytest.raises(CheckpointError, match="not a state dict"):
        load(save(tmp_path / "net.pth", content))


def test_nan_is_refused(tmp_path: Path) -> None:
    state = pretrained()
    state["norm.bias"][2] = float("nan")
    with pytest.raises(CheckpointError, match=r"NaN or infinity in norm\.bias"):
        load(save(tmp_path / "net.pth", state))


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@settings(max_examples=30, deadline=None)
@given(cut=st.floats(0, 1), flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(1, 255)), max_size=3))
def test_damaged_files_are_refused_or_whole(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, cut: float, flips: list[tuple[float, int]]
) -> None:
    path = save(tmp_path_factory.mktemp("w") / f"net{suffix}", pretrained())
    data = bytearray(path.read_bytes())
    for place, bits in flips:
        data[int(place * len(data))] ^= bits
    path.write_bytes(data[: int(cut * len(data)) + 1])
    message = f"{path}: "
    try:
        read_state_dict(path)
    except CheckpointError as error:  # nothing else may come out of it
        message = str(error)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


def test_missing_files_and_misspelt_words() -> None:
    with pytest.raises(CheckpointError, match="no file 'imagnet'; did you mean 'imagenet'"):
        Weights("imagnet").load(network(), NORMALISATION)
    with pytest.raises(CheckpointError, match=r"no file 'there/net\.pth'"):
        Weights("there/net.pth").load(network(), NORMALISATION)


def test_none_leaves_the_network_as_it_was() -> None:
    net = network()
    report = Weights("none").load(net, NORMALISATION).report
    assert torch.equal(net.state_dict()["conv.weight"], network().state_dict()["conv.weight"])
    assert (report.origin, report.sha256, report.loaded) == ("none", None, ())
    assert "told so" in str(report)


class TestImagenet:
    def test_loads_what_the_backbone_points_to(self, tmp_path: Path) -> None:
        path = save(tmp_path / "public.pth", pretrained())
        net = network()
        report = Weights("imagenet").load(net, NORMALISATION, lambda: path).report
        assert report.origin == "imagenet (public.pth)"
        assert len(report.loaded) == 9

    def test_says_where_there_is_none(self) -> None:
        with pytest.raises(ConfigError, match="no public weights"):
            Weights("imagenet").load(network(), NORMALISATION)

    def test_a_failed_download_is_one_line(self) -> None:
        def fail() -> Path:
            raise ConnectionError("no route\nto host")

        with pytest.raises(CheckpointError, match=r"cannot download the ImageNet weights \(no route\)"):
            Weights("imagenet").load(network(), NORMALISATION, fail)

    def test_downloads_once_and_checks_the_hash_in_the_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "cache"))
        source = save(tmp_path / "net.pth", pretrained())
        good = source.rename(tmp_path / f"net-{file_digest(source)[:8]}.pth")
        found = download(good.as_uri())
        assert found.read_bytes() == good.read_bytes()
        good.unlink()
        assert download(good.as_uri()) == found  # from the cache
        bad = save(tmp_path / "net-00000000.pth", pretrained())
        with pytest.raises(RuntimeError, match="invalid hash"):
            download(bad.as_uri())
