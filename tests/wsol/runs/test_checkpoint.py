"""Checkpoints hold any nested plain state exactly."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsol.errors import CheckpointError
from wsol.runs.checkpoint import Checkpoints, digest_of, load_checkpoint, load_model_state, save_checkpoint

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(state=st.dictionaries(st.text(max_size=5), nested, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_nested_plain_state_comes_back_equal(state: dict[str, Any], tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", state)
    assert load_checkpoint(tmp_path / "c") == state


def test_tensors_of_every_kind_come_back_bit_for_bit(tmp_path: Path) -> None:
    shared = torch.randn(4, 6)
    tensors = {
        "strided": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "transposed": shared.T,
        "shared": shared,
        "row of the shared one": shared[1],
        "scalar": torch.tensor(1.5, dtype=torch.float64),
        "empty": torch.zeros(0, 3),
        "nan": torch.tensor([float("nan"), float("inf"), -0.0]),
        "half": torch.randn(3).half(),
        "brain": torch.randn(3).bfloat16(),
        "bool": torch.tensor([True, False]),
        "rng": torch.get_rng_state(),
    }
    save_checkpoint(tmp_path / "c", {"tensors": tensors, "list": [shared, {0: shared}]})
    loaded = load_checkpoint(tmp_path / "c")
    for name, tensor in tensors.items():
        back = loaded["tensors"][name]
        assert back.dtype == tensor.dtype
        assert torch.equal(
            back.contiguous().reshape(-1).view(torch.uint8), tensor.contiguous().reshape(-1).view(torch.uint8)
        ), name
    assert torch.equal(loaded["list"][1][0], shared)


def test_keys_with_slashes_are_kept_apart(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", {"a/b": torch.ones(1), "a": {"b": torch.zeros(1)}})
    loaded = load_checkpoint(tmp_path / "c")
    assert (loaded["a/b"].item(), loaded["a"]["b"].item()) == (1, 0)


def test_the_same_state_makes_the_same_bytes(tmp_path: Path) -> None:
    state = {"a": torch.arange(5), "b": {"c": 1.0, "d": [torch.zeros(2), "x"]}}
    for name in "xy":
        save_checkpoint(tmp_path / name, state)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_what_is_not_plain_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Path at /a/0"):
        save_checkpoint(tmp_path / "c", {"a": [tmp_path]})
    assert not list(tmp_path.iterdir())


def test_the_digest_is_that_of_the_content_and_is_read_from_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, {"n": 1, "w": torch.arange(5)})
    content = path.read_bytes()
    line, _, payload = content.partition(b"\n")
    assert digest_of(path) == hashlib.sha256(payload).hexdigest() == line.split()[-1].decode()
    path.write_bytes(line + b"\n")  # the rest is not looked at
    assert digest_of(path) == hashlib.sha256(payload).hexdigest()
    save_checkpoint(path, {"n": 2, "w": torch.arange(5)})
    assert digest_of(path) != hashlib.sha256(payload).hexdigest()


def test_last_previous_and_best(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "checkpoints")
    store.prepare()
    assert store.load_last(print) is None
    for number in range(4):
        store.save({"n": number}, best=number == 1)
    assert [load_checkpoint(p)["n"] for p in (store.last, store.previous, store.best)] == [3, 2, 1]


def test_a_model_that_differs_is_described_by_its_first_keys() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 4))
    other = {
        "0.weight": torch.zeros(3, 2),
        "0.bias": torch.zeros(3),
        "1.weight": torch.zeros(5, 3),
        "x": torch.ones(1),
    }
    with pytest.raises(CheckpointError) as error:
        load_model_state(model, other, here="vgg16, 4 classes", there="resnet50, 5 classes")
    message = str(error.value)
    assert "another model (resnet50, 5 classes) than this one (vgg16, 4 classes)" in message
    assert "x: only in the checkpoint" in message
    assert "1.weight: (5, 3) in the checkpoint, (4, 3) here" in message
    assert "1.bias: missing in the checkpoint" in message
    assert model.state_dict()["0.bias"].ne(0).any(), "nothing may be loaded in part"
