"""GPCA's variants: what they compute, that they are differentiable, and that nothing makes them break."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gpca import GPCA
from gpca.gpca import FIXED_THETA
from gpca.neighbours import Windows

VARIANTS: list[dict[str, Any]] = [
    {"variant": "full"},
    {"variant": "fixed"},
    {"variant": "no-prior"},
    {"variant": "local"},
    {"variant": "mha", "group_size": 4},
]


def name_of(options: dict[str, Any]) -> str:
    return "-".join(str(value) for value in options.values())


@pytest.fixture(params=VARIANTS, ids=name_of)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def mask_of(module: GPCA, x: Tensor) -> Tensor:
    module(x)
    assert module.mask is not None
    return module.mask


# -- parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "expected"), [("full", 4), ("local", 4), ("mha", 4), ("fixed", 0), ("no-prior", 400)]
)
def test_number_of_parameters(variant: Any, expected: int) -> None:
    assert sum(p.numel() for p in GPCA(200, variant).parameters()) == expected


def test_theta_is_the_exponential_of_the_parameters() -> None:
    module = GPCA(4, theta=(0.5, 2, 1, 3))
    torch.testing.assert_close(
        module.theta, torch.tensor([0.5, 2, 1, 3], dtype=torch.float64), rtol=1e-6, atol=0
    )
    assert torch.equal(GPCA(4).theta, torch.ones(4, dtype=torch.float64))
    with torch.no_grad():
        module.raw_theta.copy_(torch.tensor([0.0, -1, 1, 2]))
    torch.testing.assert_close(module.theta, torch.tensor([0.0, -1, 1, 2], dtype=torch.float64).exp())


def test_theta_stays_out_of_weight_decay() -> None:
    assert set(GPCA.no_weight_decay) == set(dict(GPCA(4, gain=True).named_parameters()))


# -- values ------------------------------------------------------------------------------------------------


def test_fixed_theta_is_used_as_given(maps: Callable[..., Tensor], separate_solves: Callable) -> None:
    x = maps("smooth", channels=12) * 0.1
    for module, theta in (
        (GPCA(12, "fixed"), FIXED_THETA),
        (GPCA(12, "fixed", theta=(0.5, 2, 1, 0)), (0.5, 2, 1, 0)),
    ):
        for n, image in enumerate(x.flatten(2).numpy()):
            np.testing.assert_allclose(
                mask_of(module, x)[n], separate_solves(image, theta=theta).mask, rtol=0, atol=1e-11
            )


def test_delta_is_the_precision_of_the_noise(maps: Callable[..., Tensor], separate_solves: Callable) -> None:
    x = maps("smooth", channels=12, batch=1)
    expected = separate_solves(x[0].flatten(1).numpy(), delta=10).mask
    np.testing.assert_allclose(mask_of(GPCA(12, delta=10), x)[0], expected, rtol=0, atol=1e-11)


def test_normalize_divides_by_the_root_of_the_map_size(maps: Callable[..., Tensor]) -> None:
    x = maps("random", channels=8)
    divided = mask_of(GPCA(8), x / 7)
    torch.testing.assert_close(mask_of(GPCA(8, normalize=True), x), divided, rtol=0, atol=1e-12)
    assert (mask_of(GPCA(8), x) - divided).abs().max() > 1e-4


def test_without_prior_the_mask_is_the_sigmoid_of_its_parameters() -> None:
    module = GPCA(3, "no-prior")
    assert torch.equal(mask_of(module, torch.randn(2, 3, 4, 4)), torch.full((2, 3), 0.5))
    with torch.no_grad():
        module.mu.copy_(torch.tensor([-2.0, 0, 1]))
        module.log_sigma2.copy_(torch.tensor([0.0, 1, 2]))
    mu, s2 = np.array([-2.0, 0, 1]), np.exp([0.0, 1, 2])
    expected = 1 / (1 + np.exp(-mu / np.sqrt(1 + np.pi / 8 * s2)))
    np.testing.assert_allclose(mask_of(module, torch.randn(1, 3, 4, 4))[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("channels", "size", "groups"),
    [
        (12, 4, [4, 4, 4]),
        (11, 4, [4, 4, 3]),
        (9, 4, [4, 5]),  # one channel left over joins its neighbour
        (5, 4, [5]),
        (3, 16, [3]),
        (200, 16, [16] * 12 + [8]),
    ],
)
def test_mha_is_full_gpca_in_each_group(
    channels: int, size: int, groups: list[int], maps: Callable[..., Tensor]
) -> None:
    x = maps("random", channels=channels)
    module = GPCA(channels, "mha", group_size=size)
    alone = [mask_of(GPCA(part.shape[1]), part) for part in x.split(groups, dim=1)]
    torch.testing.assert_close(mask_of(module, x), torch.cat(alone, dim=1), rtol=0, atol=1e-12)

    weights = module.posterior(x, weights=True).a
    assert weights is not None
    blocks = torch.block_diag(*(torch.ones(g, g) for g in groups)).bool()
    assert not weights[:, ~blocks].any()
    first = GPCA(groups[0]).posterior(x[:, : groups[0]], weights=True).a
    assert first is not None
    torch.testing.assert_close(weights[:, : groups[0], : groups[0]], first, rtol=0, atol=1e-11)


def test_mha_has_groups_of_16_by_default(maps: Callable[..., Tensor]) -> None:
    x = maps("random", channels=40)
    assert torch.equal(mask_of(GPCA(40, "mha"), x), mask_of(GPCA(40, "mha", group_size=16), x))


@pytest.mark.parametrize(
    ("channels", "size"), [(2, 3), (8, 3), (16, 3), (64, 3), (128, 5), (200, 5), (512, 5), (2048, 7)]
)
def test_default_window_is_that_of_eca(channels: int, size: int) -> None:
    assert Windows.default_size(channels) == size


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", ["random", "smooth", "dead", "duplicate", "1x1"])
def test_local_with_a_window_over_all_channels_is_full(
    kind: str, reduction: Any, maps: Callable[..., Tensor]
) -> None:
    x = maps(kind, channels=10)
    full = GPCA(10, reduction=reduction).posterior(x, weights=True)
    for window in (19, 21):
        local = GPCA(10, "local", window=window, reduction=reduction).posterior(x, weights=True)
        for got, wanted in zip(local, full, strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=1e-7 if kind != "random" else 1e-11)


@pytest.mark.parametrize("window", [3, 5])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_local_equals_separate_solves_in_clipped_windows(
    window: int, reduction: Any, maps: Callable[..., Tensor], separate_solves: Callable
) -> None:
    x = maps("smooth", channels=9)
    reach = window // 2

    def neighbours(c: int) -> list[int]:
        return [i for i in range(9) if abs(i - c) <= reach]

    module = GPCA(9, "local", window=window, reduction=reduction)
    posterior = module.posterior(x, weights=True)
    assert posterior.a is not None
    for n, image in enumerate(x.flatten(2).numpy()):
        expected = separate_solves(image, mean=reduction == "mean", neighbours=neighbours)
        np.testing.assert_allclose(mask_of(module, x)[n], expected.mask, rtol=0, atol=1e-11)
        np.testing.assert_allclose(posterior.a[n].detach(), expected.a, rtol=0, atol=1e-9)


def test_sum_spreads_the_masks_and_mean_hardly_does(maps: Callable[..., Tensor]) -> None:
    x = maps("smooth", channels=200)
    assert mask_of(GPCA(200), x).std() < 1e-3
    assert mask_of(GPCA(200, reduction="sum"), x).std() > 1e-2


# -- gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [{}, {"reduction": "sum"}, {"normalize": True}], ids=str)
def test_gradcheck_for_x_and_every_parameter(options: dict[str, Any], extra: dict[str, Any]) -> None:
    module = GPCA(9, **options, **extra).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    x = torch.randn(2, 9, 3, 2, dtype=torch.float64, generator=generator).mul_(0.5).requires_grad_()
    names = [name for name, _ in module.named_parameters()]

    def forward(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (x,))

    values = [p.detach().clone().requires_grad_() for p in module.parameters()]
    assert torch.autograd.gradcheck(forward, (x, *values))


# -- inputs that break other implementations ---------------------------------------------------------------


def hard_maps(kind: str, scale: float) -> Tensor:
    generator = torch.Generator().manual_seed(6)
    shape = (2, 512, 1, 1) if kind == "512x1x1" else (2, 60, 7, 7)
    x = torch.randn(shape, dtype=torch.float64, generator=generator)
    share = {"dead 10 %": 6, "dead 30 %": 18, "duplicate 10 %": 6, "duplicate 30 %": 18}.get(kind, 0)
    if kind.startswith("dead"):
        x[:, :share] = 0
    elif kind.startswith("duplicate"):
        x[:, :share] = x[:, share : 2 * share]
    elif kind == "all zero":
        x.zero_()
    elif kind == "all equal":
        x[:] = x[:, :1]
    return x * scale


HARD = ["all zero", "dead 10 %", "dead 30 %", "duplicate 10 %", "duplicate 30 %", "all equal", "512x1x1"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", HARD)
def test_values_and_gradients_are_finite(
    kind: str, scale: float, dtype: torch.dtype, options: dict[str, Any]
) -> None:
    x = hard_maps(kind, scale).to(dtype).requires_grad_()
    module = GPCA(x.shape[1], **options).to(dtype)
    y = module(x)
    upstream = torch.randn(y.shape, dtype=dtype, generator=torch.Generator().manual_seed(8))
    (y * upstream).sum().backward()
    assert y.dtype == dtype
    assert y.isfinite().all()
    assert module.mask is not None
    # 0 and 1 themselves are rounded: a weight a_c has no bound, and neither has A.
    assert ((module.mask >= 0) & (module.mask <= 1)).all()
    assert x.grad is not None
    assert x.grad.dtype == dtype
    assert x.grad.isfinite().all()
    for parameter in module.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("theta", [(1, 64, 0, 0), (1, 1e6, 0, 0), (0, 1, 1, 0), (0, 1, 0, 1)], ids=str)
@pytest.mark.parametrize("kind", HARD)
def test_any_fixed_theta_is_finite_on_large_maps(kind: str, theta: tuple[float, ...]) -> None:
    """Without the linear term rounding of the distances is large against diag K."""
    x = hard_maps(kind, 1e3).requires_grad_()
    module = GPCA(x.shape[1], "fixed", theta=theta)
    module(x).sum().backward()
    assert module.mask is not None
    assert module.mask.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
def test_autocast_around_a_model_changes_nothing_inside(
    dtype: torch.dtype, scale: float, options: dict[str, Any]
) -> None:
    torch.manual_seed(9)
    convolution = nn.Conv2d(3, 20, 3, padding=1)
    module = GPCA(20, **options)
    images = torch.randn(2, 3, 8, 8) * scale
    with torch.autocast("cpu", dtype=dtype):
        maps = convolution(images)
        y = module(maps)
        logits = y.mean(dim=(2, 3))
    assert maps.dtype == y.dtype == dtype
    nn.functional.cross_entropy(logits.float(), torch.tensor([0, 1])).backward()
    assert y.isfinite().all()
    for parameter in (*convolution.parameters(), *module.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
    inside = mask_of(module, maps.detach())
    assert inside.dtype == torch.float32
    torch.testing.assert_close(inside.double(), mask_of(module, maps.detach().double()), rtol=0, atol=1e-7)


def test_autocast_does_not_touch_float32_input(maps: Callable[..., Tensor], options: dict[str, Any]) -> None:
    x = maps("smooth", channels=20).float()
    module = GPCA(20, **options)
    outside = mask_of(module, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = mask_of(module, x)
    assert torch.equal(inside, outside)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_nan_stays_in_its_sample(bad: float, maps: Callable[..., Tensor], options: dict[str, Any]) -> None:
    x = maps("random", channels=12, batch=3).requires_grad_()
    spoiled = x.detach().clone()
    spoiled[1, 5, 2, 3] = bad
    spoiled.requires_grad_()
    module = GPCA(12, **options).double()
    clean, dirty = module(x), module(spoiled)
    others = [0, 2]
    assert torch.equal(dirty[others], clean[others])
    assert not dirty[1, 5, 2, 3].isfinite()
    clean.square().sum().backward()
    dirty[others].square().sum().backward()
    assert x.grad is not None
    assert spoiled.grad is not None
    torch.testing.assert_close(spoiled.grad[others], x.grad[others], rtol=1e-12, atol=1e-13)


def test_nan_in_one_sample_makes_its_whole_mask_nan(maps: Callable[..., Tensor]) -> None:
    x = maps("random", channels=12, batch=2)
    x[1, 5, 2, 3] = torch.nan
    mask = mask_of(GPCA(12), x)
    assert mask[1].isnan().all()
    assert mask[0].isfinite().all()


@pytest.mark.long
@pytest.mark.parametrize("variant", ["full", "local", "mha"])
def test_an_exported_program_adds_jitter_and_keeps_nan_to_its_sample(
    variant: Any, maps: Callable[..., Tensor]
) -> None:
    """Tracing cannot branch on data, so the exported program takes another path than eager mode does."""
    x = maps("duplicate", channels=20, batch=3)
    x[0] *= 3e3
    x[1, 4] = torch.nan
    module = GPCA(20, variant, delta=1e12).eval()
    exported = torch.export.export(module, (torch.randn_like(x),)).module()(x)
    assert exported[0].isfinite().all()
    assert exported[1, 4].isnan().all()
    torch.testing.assert_close(exported, module(x), rtol=0, atol=1e-9, equal_nan=True)


# -- bad arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"channels": 1}, "channels"),
        ({"channels": 0}, "channels"),
        ({"delta": 0}, "delta"),
        ({"delta": -1.0}, "delta"),
        ({"delta": float("nan")}, "delta"),
        ({"delta": float("inf")}, "delta"),
        ({"variant": "fast"}, "variant"),
        ({"reduction": "max"}, "reduction"),
        ({"variant": "fixed", "theta": (1, -1, 0, 1)}, "theta"),
        ({"variant": "fixed", "theta": (1, 1, 1)}, "theta"),
        ({"variant": "fixed", "theta": (0, 1, 0, 0)}, "theta"),
        ({"variant": "fixed", "theta": (1, float("nan"), 0, 0)}, "theta"),
        ({"theta": (1, 1, 0, 1)}, "theta"),
        ({"variant": "no-prior", "theta": (1, 1, 1, 1)}, "theta"),
        ({"variant": "mha", "group_size": 1}, "group_size"),
        ({"group_size": 4}, "group_size"),
        ({"variant": "local", "window": 4}, "window"),
        ({"variant": "local", "window": 1}, "window"),
        ({"variant": "mha", "window": 3}, "window"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        GPCA(**({"channels": 8} | arguments))


@pytest.mark.parametrize("channels", [2.0, "8", True])
def test_channels_must_be_an_int(channels: Any) -> None:
    with pytest.raises(TypeError, match="channels"):
        GPCA(channels)


def test_what_no_prior_does_not_have() -> None:
    module = GPCA(4, "no-prior")
    with pytest.raises(ValueError, match="theta"):
        _ = module.theta
    with pytest.raises(ValueError, match="weights"):
        module.posterior(torch.zeros(1, 4, 2, 2), weights=True)
