"""What every attention promises, whatever it computes."""

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor

from gpca import (
    GPCA,
    READINGS,
    SRP,
    Attention,
    ChannelAttention,
    attention_class,
    available_attentions,
    build_attention,
)

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
    ("eca", {}),
    ("cbam-s", {}),
    ("cbam", {}),
    ("nlnet", {}),
    ("gcnet", {}),
    ("gct", {}),
    ("bam", {}),
    *(("gpca", {"reading": reading}) for reading in READINGS if reading != "literal"),
    ("gpca", {"variant": "fixed", "theta": "auto", "center": True}),
]
CHANNELS = 20
# The sum of a map over the places, where it is not a weight of each place but a share.
SHARES = ("nlnet", "gcnet")
# Parameters without a gradient: what they add is the same before a softmax or a batch norm, or has factor 0.
WITHOUT_GRADIENT = {
    "gpca": {"log_sigma2"},  # while mu is 0
    "nlnet": {"p.bias", "z.bias"},
    "gcnet": {"conv_attn.bias"},
}


def test_every_attention_is_among_the_cases() -> None:
    assert {name for name, _ in CASES} == set(available_attentions())


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, case[1].values())]))
def attention(request: pytest.FixtureRequest) -> Attention:
    name, options = request.param
    torch.manual_seed(0)
    return build_attention(name, CHANNELS, **options)


def name_of(attention: Attention) -> str:
    return next(name for name in available_attentions() if attention_class(name) is type(attention))


def move(attention: Attention) -> None:
    """Change every parameter a little: some attentions start as the identity, which hides what is inside."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))


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


SIZES = [(1, 1), (1, 4), (14, 14), (3, 8)]


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize("batch", [1, 3])
def test_what_comes_out_and_what_is_kept(
    attention: Attention, batch: int, height: int, width: int, training: bool
) -> None:
    """The shape of x; a mask or a map of the right shape, detached; y = mask x for channel attentions."""
    move(attention)
    attention.train(training)
    assert attention.mask is None
    assert attention.map is None
    x = maps(batch, height, width)
    if height * width < attention.min_places:
        with pytest.raises(ValueError, match=r"^\w+ cannot work on a map of 1x1; take another attention"):
            attention(x)
        return
    y = attention(x.requires_grad_())
    assert y.shape == x.shape
    assert y.isfinite().all()
    mask, map = attention.mask, attention.map
    assert mask is not None or map is not None
    if mask is not None:
        assert mask.shape == (batch, CHANNELS)
        assert not mask.requires_grad
        assert ((mask >= 0) & (mask <= (2 if name_of(attention) in ("gct", "bam") else 1))).all()
    if map is not None:
        assert map.shape == (batch, height, width)
        assert not map.requires_grad
        assert ((map >= 0) & (map <= (2 if name_of(attention) == "bam" else 1 + 1e-6))).all()
    if name_of(attention) in SHARES:
        assert map is not None
        torch.testing.assert_close(map.sum(dim=(1, 2)), torch.ones(batch))
    if isinstance(attention, ChannelAttention):
        assert mask is not None
        assert map is None
        torch.testing.assert_close(y, x * mask[:, :, None, None])


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_gradients_are_those_of_the_function(name: str, options: dict[str, Any], training: bool) -> None:
    torch.manual_seed(0)
    attention = build_attention(name, 4, dtype=torch.float64, **options).train(training)
    move(attention)
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 4, 3, 2, dtype=torch.float64, generator=generator).requires_grad_()

    def call(x: Tensor, *_parameters: Tensor) -> Tensor:
        if isinstance(attention, SRP):
            attention.seed(0)
        y: Tensor = attention(x)
        return y

    assert torch.autograd.gradcheck(call, (x, *attention.parameters()), fast_mode=True, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_is_kept_and_the_weights_are_never_coarser_than_float32(
    attention: Attention, dtype: torch.dtype
) -> None:
    attention.to(dtype)
    y = attention(maps(dtype=dtype))
    assert y.dtype == dtype
    kept = [weights for weights in (attention.mask, attention.map) if weights is not None]
    assert kept
    assert {weights.dtype for weights in kept} == {torch.float64 if dtype == torch.float64 else torch.float32}


def test_an_empty_batch_gives_an_empty_batch(attention: Attention) -> None:
    assert attention(maps(batch=0)).shape == (0, CHANNELS, 6, 5)
    assert all(tensor.isfinite().all() for tensor in attention.state_dict().values())


def test_the_input_is_left_as_it_was(attention: Attention) -> None:
    x = maps()
    before = x.clone()
    attention(x)
    assert torch.equal(x, before)


def test_channels_last_input_gives_the_same(attention: Attention) -> None:
    attention.eval()
    x = maps()
    torch.testing.assert_close(attention(x.to(memory_format=torch.channels_last)), attention(x))


def test_gradients_reach_the_input_and_every_parameter(attention: Attention) -> None:
    if not isinstance(attention, GPCA):
        move(attention)
    without = WITHOUT_GRADIENT.get(name_of(attention), set())
    x = maps().requires_grad_()
    attention(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.any()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any() or name in without, name


@pytest.mark.parametrize("strict", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.long
def test_export_in_eval(attention: Attention, strict: bool) -> None:
    move(attention)
    attention.eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(attention, (maps(),), dynamic_shapes=({0: batch},), strict=strict)
    assert attention.mask is None
    assert attention.map is None
    for size in (1, 3, 7):
        x = maps(size)
        torch.testing.assert_close(exported.module()(x), attention(x), rtol=0, atol=1e-6)


@pytest.mark.long
def test_an_exported_program_survives_a_file(attention: Attention) -> None:
    attention.eval()
    file = io.BytesIO()
    torch.export.save(torch.export.export(attention, (maps(),)), file)
    file.seek(0)
    torch.testing.assert_close(torch.export.load(file).module()(maps()), attention(maps()), rtol=0, atol=1e-6)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_compile_gives_the_same_values_gradients_and_mask(attention: Attention) -> None:
    attention.eval()
    x = maps().requires_grad_()
    expected = attention(x)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), x)
    attention.mask = attention.map = None
    torch._dynamo.reset()
    compiled = torch.compile(attention, backend="aot_eager", fullgraph=True)
    y = compiled(x)
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-6)
    assert attention.mask is not None or attention.map is not None


def test_state_dict_round_trip(attention: Attention) -> None:
    attention.eval()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.1)
    expected = attention(maps())
    file = io.BytesIO()
    torch.save(attention.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert not {"mask", "map"} & set(state)
    again = copy.deepcopy(attention)
    with torch.no_grad():
        for parameter in again.parameters():
            parameter.zero_()
    again.load_state_dict(state, strict=True)
    assert torch.equal(again(maps()), expected)


def test_deepcopy_is_independent(attention: Attention) -> None:
    attention(maps())
    copied = copy.deepcopy(attention)
    copied(maps(batch=1))
    kept = [weights for weights in (attention.mask, attention.map) if weights is not None]
    assert [len(weights) for weights in kept] == [3] * len(kept)
    own = {id(parameter) for parameter in attention.parameters()}
    assert not any(id(parameter) in own for parameter in copied.parameters())


def test_no_weight_decay_names_parameters_that_some_variant_has(attention: Attention) -> None:
    assert isinstance(attention.no_weight_decay, tuple)
    assert set(attention.no_weight_decay) <= {"raw_theta", "raw_gain"}


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.complex64])
def test_input_that_is_not_real_floating_point(attention: Attention, dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"^x must hold floating-point numbers"):
        attention(torch.zeros(2, CHANNELS, 3, 3, dtype=dtype))


@pytest.mark.parametrize("shape", [(CHANNELS,), (2, CHANNELS), (2, CHANNELS, 3), (1, 2, CHANNELS, 3, 3)])
def test_input_of_another_rank(attention: Attention, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^x must be \(N, C, H, W\)"):
        attention(torch.zeros(shape))


@pytest.mark.parametrize("channels", [1, CHANNELS - 1, CHANNELS + 1])
def test_input_with_other_channels(attention: Attention, channels: int) -> None:
    with pytest.raises(ValueError, match="20 channels"):
        attention(torch.zeros(2, channels, 3, 3))
