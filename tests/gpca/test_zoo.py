"""The attentions that GPCA is compared with: timm's own values, plain NumPy, the paper's counts."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import timm
import torch
from timm.layers.cbam import CbamModule, ChannelAttn
from timm.layers.eca import EcaModule
from timm.layers.global_context import GlobalContext
from timm.layers.non_local_attn import NonLocalAttn
from torch import Tensor, nn

from gpca import BAM, CBAM, GCT, attention_class, available_attentions, build_attention

TIMMS: dict[str, Callable[[int], nn.Module]] = {
    "eca": EcaModule,
    "cbam-s": lambda channels: ChannelAttn(channels, rd_ratio=1 / 4),
    "cbam": lambda channels: CbamModule(channels, rd_ratio=1 / 4),
    "nlnet": lambda channels: NonLocalAttn(channels, rd_ratio=1 / 2, rd_divisor=1, use_scale=False),
    "gcnet": lambda channels: GlobalContext(channels, fuse_add=True, fuse_scale=False, rd_ratio=1 / 4),
}


def maps(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def moved(module: nn.Module) -> nn.Module:
    """Parameters and running statistics away from where they start, so that none is 0 or 1."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for tensor in (*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())):
            tensor.add_(0.3 * torch.rand(tensor.shape, generator=generator))
    return module


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("channels", [6, 20, 64])
@pytest.mark.parametrize("name", TIMMS)
def test_the_value_and_the_gradient_are_timms_own(name: str, channels: int, training: bool) -> None:
    torch.manual_seed(0)
    # In double precision: single precision rounds by up to 1e-6, as the order of its sums has it.
    timms = moved(TIMMS[name](channels)).double().train(training)
    ours = build_attention(name, channels).double().train(training)
    ours.load_state_dict(timms.state_dict(), strict=True)
    x = maps(3, channels, 7, 5).double()
    torch.testing.assert_close(ours(x), timms(x), rtol=1e-9, atol=1e-9)
    for (key, value), theirs in zip(ours.state_dict().items(), timms.state_dict().values(), strict=True):
        torch.testing.assert_close(value, theirs, msg=key)  # the running statistics have moved alike
    gradients = []
    for module in (ours, timms):
        again = x.clone().requires_grad_()
        module(again).square().sum().backward()
        gradients.append(again.grad)
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", TIMMS)
def test_the_first_values_are_timms(name: str) -> None:
    torch.manual_seed(4)
    ours = build_attention(name, 16).state_dict()
    torch.manual_seed(4)
    theirs = TIMMS[name](16).state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


# The paper's table, at C channels with r = 4, and what ours has on top of it; the docstrings say why.
PAPER: dict[str, tuple[Callable[[int], int], Callable[[int], int]]] = {
    "se": (lambda C: 2 * C**2 // 4, lambda C: 0),
    "srp": (lambda C: 2 * C**2 // 4, lambda C: 0),
    "nlnet": (lambda C: 2 * C**2, lambda C: 3 * C // 2 + C + 2 * C),  # biases of t, p, g and z; batch norm
    "bam": (lambda C: (3 * C**2 + C) // 4 + 9 * C**2 // 16, lambda C: C + 1 + 6 * C // 4),
    "cbam": (lambda C: 2 * C**2 // 4 + 98, lambda C: 2),  # batch norm
    "cbam-s": (lambda C: 2 * C**2 // 4, lambda C: 0),
    "gct": (lambda C: 3 * C, lambda C: 0),
    "gpca": (lambda C: 4, lambda C: 0),
}


@pytest.mark.parametrize("channels", [64, 512])
@pytest.mark.parametrize("name", PAPER)
def test_parameters_are_the_papers_and_the_stated_rest(name: str, channels: int) -> None:
    of_paper, on_top = PAPER[name]
    count = sum(p.numel() for p in build_attention(name, channels, device="meta").parameters())
    assert count == of_paper(channels) + on_top(channels)


@pytest.mark.parametrize(("channels", "k"), [(64, 3), (128, 5), (512, 5), (1024, 5), (2048, 7)])
def test_eca_has_the_papers_window(channels: int, k: int) -> None:
    """The nearest odd number of log2(C)/2 + 1/2: at 128 it is 4, which timm takes up to 5."""
    assert sum(p.numel() for p in build_attention("eca", channels).parameters()) == k


@pytest.mark.parametrize(
    ("name", "count"), [("cbam", 131_172), ("nlnet", 526_592), ("gcnet", 132_481), ("bam", 345_473)]
)
def test_counts_at_512_are_those_of_the_docstrings(name: str, count: int) -> None:
    assert sum(p.numel() for p in build_attention(name, 512).parameters()) == count
    assert f"{count:,}" in (attention_class(name).__doc__ or "")


def test_gct_is_its_equation() -> None:
    gct = GCT(5).double()
    x = maps(3, 5, 4, 6).double()
    assert torch.equal(gct(x), x)  # the identity at the start
    moved(gct)
    alpha, gamma, beta = (p.detach().numpy() for p in (gct.alpha, gct.gamma, gct.beta))
    for image, y in zip(x.numpy(), gct(x).detach().numpy(), strict=True):
        s = np.array([alpha[c] * np.sqrt((image[c] ** 2).sum() + 1e-5) for c in range(5)])
        gate = 1 + np.tanh(gamma * s / np.sqrt((s**2).mean() + 1e-5) + beta)
        np.testing.assert_allclose(y, image * gate[:, None, None], rtol=1e-12)


def test_gct_does_not_overflow_in_half_precision() -> None:
    gct = GCT(4).half()
    gct(torch.full((1, 4, 8, 8), 300.0, dtype=torch.float16))
    assert gct.mask is not None
    assert torch.equal(gct.mask, torch.ones(1, 4))


@pytest.mark.parametrize("dilation", [1, 4])
def test_bam_is_its_equation(dilation: int) -> None:
    bam = moved(BAM(8, ratio=4, dilation=dilation)).double().eval()
    assert isinstance(bam, BAM)
    state = {key: value.numpy() for key, value in bam.state_dict().items()}
    x = maps(2, 8, 6, 5).double().numpy()

    def norm(name: str, values: np.ndarray, axis: int) -> np.ndarray:
        shape = [-1 if i == axis else 1 for i in range(values.ndim)]
        mean, var, weight, bias = (
            state[f"{name}.{key}"].reshape(shape) for key in ("running_mean", "running_var", "weight", "bias")
        )
        return (values - mean) / np.sqrt(var + 1e-5) * weight + bias

    def relu(values: np.ndarray) -> np.ndarray:
        return np.maximum(values, 0)

    m = relu(norm("fc_norm", x.mean((2, 3)) @ state["fc1.weight"].T, 1)) @ state["fc2.weight"].T
    m += state["fc2.bias"]
    inside = relu(norm("reduce_norm", np.einsum("oc,nchw->nohw", state["reduce.weight"][:, :, 0, 0], x), 1))
    padded = np.pad(inside, ((0, 0), (0, 0), (dilation, dilation), (dilation, dilation)))
    seen = sum(
        np.einsum(
            "oc,nchw->nohw",
            state["dilated.weight"][:, :, i, j],
            padded[:, :, i * dilation : i * dilation + 6, j * dilation : j * dilation + 5],
        )
        for i in range(3)
        for j in range(3)
    )
    p = np.einsum("oc,nchw->nohw", state["final.weight"][:, :, 0, 0], relu(norm("dilated_norm", seen, 1)))
    p += state["final.bias"]
    weights = 1 + 1 / (1 + np.exp(-m[:, :, None, None] * p))
    np.testing.assert_allclose(bam(torch.from_numpy(x)).detach().numpy(), weights * x, rtol=1e-10)
    assert bam.mask is not None
    assert bam.map is not None
    np.testing.assert_allclose(bam.mask.numpy(), weights.mean((2, 3)), rtol=1e-10)
    np.testing.assert_allclose(bam.map.numpy(), weights.mean(1), rtol=1e-10)


@pytest.mark.parametrize("name", ["bam", "nlnet"])
def test_one_value_per_channel_uses_the_running_statistics(name: str) -> None:
    attention = moved(build_attention(name, 8)).train()
    before = {key: value.clone() for key, value in attention.state_dict().items() if "fc_norm" in key}
    x = maps(1, 8, 3, 3) if name == "bam" else maps(1, 8, 1, 1)
    assert attention(x).isfinite().all()
    assert all(torch.equal(attention.state_dict()[key], value) for key, value in before.items())


def test_mask_and_map_of_cbam_give_its_output() -> None:
    cbam = moved(CBAM(12)).eval()
    assert isinstance(cbam, CBAM)
    x = maps(2, 12, 5, 4)
    y = cbam(x)
    assert cbam.mask is not None
    assert cbam.map is not None
    torch.testing.assert_close(y, x * cbam.mask[:, :, None, None] * cbam.map[:, None])


@pytest.mark.parametrize("name", ["nlnet", "gct"])
def test_the_identity_at_the_start(name: str) -> None:
    x = maps(2, 8, 4, 4)
    torch.testing.assert_close(build_attention(name, 8)(x), x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["cbam", "cbam-s", "nlnet", "gcnet", "bam"])
def test_a_bad_ratio_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="ratio must be at least 1, got 0"):
        build_attention(name, 8, ratio=0)


def test_a_bad_dilation_is_refused() -> None:
    with pytest.raises(ValueError, match="dilation must be at least 1, got 0"):
        BAM(8, dilation=0)


@pytest.mark.parametrize("name", TIMMS)
def test_without_timm_one_line_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m == "timm" or m.startswith("timm.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=f"attention {name} takes its layers from timm.*pip install timm"):
        build_attention(name, 8)


@pytest.mark.parametrize("name", list(available_attentions()))
def test_timms_attn_layer_takes_our_classes(name: str) -> None:
    options: dict[str, Any] = {"block_args": {"attn_layer": attention_class(name)}}
    network = timm.create_model("resnet10t", num_classes=3, **options)
    inside = [m for m in network.modules() if isinstance(m, attention_class(name))]
    assert len(inside) == 4
    assert network(maps(2, 3, 64, 64)).shape == (2, 3)
    assert all(m.mask is not None or m.map is not None for m in inside)
