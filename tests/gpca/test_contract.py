"""What every attention promises, whatever it computes."""

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor

from gpca import READINGS, ChannelAttention, attention_class, available_attentions, build_attention

CASES: list[tuple[str, dict[str, Any]]] = [
    ("identity", {}),
    ("constant", {"value": 0.25}),
    ("se", {}),
    ("srp", {}),
    ("gpca", {"variant": "full"}),
    ("gpca", {"variant": "fixed"}),
    ("gpca", {"variant": "no-prior"}),
    ("gpca", {"variant": "local"}),
    ("gpca", {"variant": "mha"}),
    ("gpca", {"reduction": "sum", "normalize": True}),
    *(("gpca", {"reading": reading}) for reading in READINGS if reading != "literal"),
    ("gpca", {"variant": "fixed", "theta": "auto", "center": True}),
]
CHANNELS = 20


def test_every_attention_is_among_the_cases() -> None:
    assert {name for name, _ in CASES} == set(available_attentions())


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, case[1].values())]))
def attention(request: pytest.FixtureRequest) -> ChannelAttention:
    name, options = request.param
    torch.manual_seed(0)
    built = build_attention(name, CHANNELS, **options)
    assert isinstance(built, ChannelAttention)
    return built


def maps(batch: int = 3, height: int = 6, width: int = 5, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, CHANNELS, height, width, generator=generator).to(dtype)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_takes_the_keywords_of_torch_layers(name: str, options: dict[str, Any]) -> None:
    """timm calls an attention with `device` and `dtype`."""
    for built in (
        attention_class(name)(CHANNELS, **options, device="meta", dtype=torch.float64),
        build_attention(name, CHANNELS, device="meta", dtype=torch.float64, **options),
    ):
        tensors = [*built.parameters(), *built.buffers()]
        assert all(t.device.type == "meta" for t in tensors)
        assert all(t.dtype == torch.float64 for t in tensors if t.is_floating_point())


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 4), (14, 14), (3, 8)])
@pytest.mark.parametrize("batch", [1, 3])
def test_y_is_mask_times_x(
    attention: ChannelAttention, batch: int, height: int, width: int, training: bool
) -> None:
    attention.train(training)
    assert attention.mask is None
    x = maps(batch, height, width)
    y = attention(x)
    mask = attention.mask
    assert mask is not None
    assert y.shape == x.shape
    assert mask.shape == (batch, CHANNELS)
    assert not mask.requires_grad
    assert ((mask >= 0) & (mask <= 1)).all()
    torch.testing.assert_close(y, x * mask[:, :, None, None])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_is_kept_and_the_mask_is_never_coarser_than_float32(
    attention: ChannelAttention, dtype: torch.dtype
) -> None:
    attention.to(dtype)
    y = attention(maps(dtype=dtype))
    assert y.dtype == dtype
    assert attention.mask is not None
    assert attention.mask.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_an_empty_batch_gives_an_empty_batch(attention: ChannelAttention) -> None:
    assert attention(maps(batch=0)).shape == (0, CHANNELS, 6, 5)


def test_the_input_is_left_as_it_was(attention: ChannelAttention) -> None:
    x = maps()
    before = x.clone()
    attention(x)
    assert torch.equal(x, before)


def test_channels_last_input_gives_the_same(attention: ChannelAttention) -> None:
    attention.eval()
    x = maps()
    torch.testing.assert_close(attention(x.to(memory_format=torch.channels_last)), attention(x))


def test_gradients_reach_the_input_and_every_parameter(attention: ChannelAttention) -> None:
    x = maps().requires_grad_()
    attention(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.any()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any() or name == "log_sigma2", name  # its gradient is 0 while mu is 0


@pytest.mark.parametrize("strict", [True, pytest.param(False, marks=pytest.mark.long)])
def test_export_in_eval(attention: ChannelAttention, strict: bool) -> None:
    attention.eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(attention, (maps(),), dynamic_shapes=({0: batch},), strict=strict)
    assert attention.mask is None
    for size in (1, 3, 7):
        x = maps(size)
        torch.testing.assert_close(exported.module()(x), attention(x), rtol=0, atol=1e-6)


@pytest.mark.long
def test_an_exported_program_survives_a_file(attention: ChannelAttention) -> None:
    attention.eval()
    file = io.BytesIO()
    torch.export.save(torch.export.export(attention, (maps(),)), file)
    file.seek(0)
    torch.testing.assert_close(torch.export.load(file).module()(maps()), attention(maps()), rtol=0, atol=1e-6)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_compile_gives_the_same_values_gradients_and_mask(attention: ChannelAttention) -> None:
    attention.eval()
    x = maps().requires_grad_()
    expected = attention(x)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), x)
    attention.mask = None
    torch._dynamo.reset()
    compiled = torch.compile(attention, backend="aot_eager", fullgraph=True)
    y = compiled(x)
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-6)
    assert attention.mask is not None


def test_state_dict_round_trip(attention: ChannelAttention) -> None:
    attention.eval()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.1)
    expected = attention(maps())
    file = io.BytesIO()
    torch.save(attention.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert "mask" not in state
    again = copy.deepcopy(attention)
    with torch.no_grad():
        for parameter in again.parameters():
            parameter.zero_()
    again.load_state_dict(state, strict=True)
    assert torch.equal(again(maps()), expected)


def test_deepcopy_is_independent(attention: ChannelAttention) -> None:
    attention(maps())
    copied = copy.deepcopy(attention)
    copied(maps(batch=1))
    assert attention.mask is not None
    assert attention.mask.shape == (3, CHANNELS)
    own = {id(parameter) for parameter in attention.parameters()}
    assert not any(id(parameter) in own for parameter in copied.parameters())


def test_no_weight_decay_names_parameters_that_some_variant_has(attention: ChannelAttention) -> None:
    assert isinstance(attention.no_weight_decay, tuple)
    assert set(attention.no_weight_decay) <= {"raw_theta", "raw_gain"}


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.complex64])
def test_input_that_is_not_real_floating_point(attention: ChannelAttention, dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"^x must hold floating-point numbers"):
        attention(torch.zeros(2, CHANNELS, 3, 3, dtype=dtype))


@pytest.mark.parametrize("shape", [(CHANNELS,), (2, CHANNELS), (2, CHANNELS, 3), (1, 2, CHANNELS, 3, 3)])
def test_input_of_another_rank(attention: ChannelAttention, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^x must be \(N, C, H, W\)"):
        attention(torch.zeros(shape))


@pytest.mark.parametrize("channels", [1, CHANNELS - 1, CHANNELS + 1])
def test_input_with_other_channels(attention: ChannelAttention, channels: int) -> None:
    with pytest.raises(ValueError, match="20 channels"):
        attention(torch.zeros(2, channels, 3, 3))
