"""The Cholesky factor and the triangular solve as ONNX functions, run by onnxruntime, against NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import gpca
from gpca.gpca import Variant
from gpca.readings import ReadingName

runtime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

Matrix = NDArray[np.float64]


@cache
def session(name: str) -> Any:
    """A session of one of the functions by itself."""
    from wsol.models import onnx_linear_algebra

    model = getattr(onnx_linear_algebra, name).to_model_proto()
    return runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(name: str, *arrays: Matrix, block: int = 16) -> Matrix:
    session_of = session(name)
    feeds = (*arrays, np.array(block))
    (found,) = session_of.run(None, {i.name: a for i, a in zip(session_of.get_inputs(), feeds, strict=True)})
    return np.asarray(found)


def positive_definite(number: int, size: int, noise: float = 1e-3) -> Matrix:
    """(number, size, size) of rank size / 2, and `noise` on the diagonal."""
    half = np.random.default_rng(size).normal(size=(number, size, max(1, size // 2)))
    return half @ half.transpose(0, 2, 1) + noise * np.eye(size)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 40, 200])
@pytest.mark.parametrize("number", [1, 3])
def test_factor_and_solve_agree_with_numpy(size: int, number: int) -> None:
    M = positive_definite(number, size)
    L = run("factor", M)
    np.testing.assert_allclose(L, np.linalg.cholesky(M), rtol=1e-9, atol=1e-9)
    B = np.random.default_rng(1).normal(size=(number, size, 3))
    np.testing.assert_allclose(L @ run("solve", L, B), B, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block", [1, 3, 7, 50])
def test_the_size_of_a_block_changes_nothing(block: int) -> None:
    M = positive_definite(2, 20)
    np.testing.assert_allclose(run("factor", M, block=block), np.linalg.cholesky(M), rtol=1e-9, atol=1e-9)


def test_the_error_is_that_of_lapack_where_the_matrix_is_ill_conditioned() -> None:
    """Condition number 1e11: |L L^T - M| stays at the rounding of M, whatever the condition number is."""
    M = positive_definite(2, 60, noise=1e-9)
    L = run("factor", M)
    assert np.linalg.cond(M).min() > 1e10
    assert np.abs(L @ L.transpose(0, 2, 1) - M).max() < 60 * np.finfo(float).eps * np.abs(M).max()


@pytest.mark.parametrize("pivot", [0, 9, 19])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_matrix_that_has_no_factor_gets_nan_to_the_end_and_spares_the_others(
    pivot: int, value: float
) -> None:
    M = np.stack([np.eye(20), np.eye(20)])
    M[1, pivot, pivot] = value
    L = run("factor", M, block=6)
    np.testing.assert_array_equal(L[0], np.eye(20))
    assert np.isnan(L[1, -1, -1]) or (value == np.inf and not np.isfinite(L[1]).all())


class Mask(nn.Module):
    """The mask of an attention, in place of the map that it weighs."""

    def __init__(self, attention: gpca.GPCA) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        return self.attention.compute_mask(x)


def hard_maps(number: int, channels: int, scale: float) -> Tensor:
    """Maps after a ReLU with dead channels, duplicates, near duplicates and a constant one."""
    x = torch.randn(number, channels, 7, 7, generator=torch.manual_seed(channels)).relu() * scale
    x[:, 3:6] = 0
    x[:, 8:12] = x[:, 7:8]
    x[:, 13] = x[:, 14] * (1 + 1e-7)
    x[:, 16] = scale
    return x


def onnx_session(model: nn.Module, example: Tensor) -> Any:
    from wsol.models.onnx_linear_algebra import TRANSLATIONS

    with torch.no_grad():
        program = torch.export.export(
            model, (example,), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=True
        )
        written = torch.onnx.export(
            program, dynamo=True, verbose=False, optimize=False, custom_translation_table=TRANSLATIONS
        )
    assert written is not None
    content = written.model_proto.SerializeToString()
    return runtime.InferenceSession(content, providers=["CPUExecutionProvider"])


OPTIONS: list[dict[str, Any]] = [
    *({"reading": name} for name in get_args(ReadingName)),
    {"variant": "fixed"},
    {"variant": "no-prior"},
    {"variant": "local"},
    {"variant": "mha", "group_size": 7, "reading": "unit-sum"},
]


def test_no_variant_is_left_out() -> None:
    assert {options.get("variant", "full") for options in OPTIONS} == set(get_args(Variant))


@pytest.mark.long
@pytest.mark.parametrize("channels", [40, 200])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_masks_agree(options: dict[str, Any], channels: int) -> None:
    attention = gpca.GPCA(channels, **options).eval()
    session = onnx_session(Mask(attention), hard_maps(2, channels, 1.0))
    order = torch.randperm(channels, generator=torch.manual_seed(0))
    for number, scale in ((1, 1.0), (3, 30.0), (2, 1e-3), (2, 0.0), (8, 100.0)):
        x = hard_maps(number, channels, scale)
        with torch.inference_mode():
            expected, reordered = attention.compute_mask(x), attention.compute_mask(x[:, order])
        if attention.variant in ("full", "fixed") and scale < 100:
            # Maps that torch itself answers for. At 100, with duplicate channels, the order of the channels
            # moves its mask by up to 3.4e-4 (docs/gpca.md); the bound of the ONNX mask is the same there.
            torch.testing.assert_close(expected[:, order], reordered, atol=1e-4, rtol=0)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-3, err_msg=f"scale {scale}")


@pytest.mark.long
def test_a_sample_that_needs_more_noise_spares_the_others() -> None:
    attention = gpca.GPCA(40).eval()
    session = onnx_session(Mask(attention), hard_maps(2, 40, 1.0))
    x = torch.cat([hard_maps(1, 40, 1.0), hard_maps(1, 40, 1e9), torch.full((1, 40, 7, 7), torch.nan)])
    with torch.inference_mode():
        expected = attention.compute_mask(x)
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(found[0], expected[0].numpy(), atol=1e-3)
    assert ((found[1] >= 0) & (found[1] <= 1)).all()
    assert np.isnan(found[2]).all()
