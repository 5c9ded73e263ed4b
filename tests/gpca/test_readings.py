"""GPCA's readings: each against the C separate solves, its gradients, and theta that is measured."""

import copy
import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gpca import GPCA, READINGS
from gpca.readings import SMALLEST_NORM, median_distance, scale_channels

VARIANTS: list[dict[str, Any]] = [
    {"variant": "full"},
    {"variant": "fixed"},
    {"variant": "local", "window": 5},
    {"variant": "mha", "group_size": 4},
]
ACTING = [name for name in READINGS if name != "literal"]


def variant_name(options: dict[str, Any]) -> str:
    return str(options["variant"])


def mask_of(module: GPCA, x: Tensor) -> Tensor:
    module(x)
    assert module.mask is not None
    return module.mask


def neighbours_of(options: dict[str, Any], channels: int) -> Callable[[int], list[int]]:
    """The channels that explain c, for the reference."""
    if options["variant"] == "local":
        return lambda c: [i for i in range(channels) if abs(i - c) <= options["window"] // 2]
    if options["variant"] == "mha":
        return lambda c: [i for i in range(channels) if i // 4 == c // 4]
    return lambda c: list(range(channels))


def reference_mask(
    x: np.ndarray, module: GPCA, options: dict[str, Any], theta: tuple[float, ...], solve: Callable
) -> np.ndarray:
    """The mask of one image x (C, D) from separate solves, with the options of a reading in plain NumPy."""
    chosen = READINGS[module.reading]
    if chosen.normalize == "unit":
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        x = np.divide(x, norms, out=np.zeros_like(x), where=norms > 0)
    mean = chosen.reduction == "mean"
    found = solve(x, theta=theta, mean=mean, neighbours=neighbours_of(options, len(x)))
    A = found.A * (1 if module.gain is None else module.gain.item())
    A = A - A.mean() if chosen.center else A
    return 1 / (1 + np.exp(-A / np.sqrt(1 + np.pi / 8 * found.B)))


@pytest.mark.parametrize("kind", ["random", "smooth", "dead", "duplicate", "1x1"])
@pytest.mark.parametrize("options", VARIANTS, ids=variant_name)
@pytest.mark.parametrize("reading", ACTING)
def test_masks_equal_the_separate_solves(
    reading: Any, options: dict[str, Any], kind: str, maps: Callable[..., Tensor], separate_solves: Callable
) -> None:
    x = maps(kind, channels=12)
    module = GPCA(12, **options, reading=reading).double()
    masks = mask_of(module, x)
    theta = tuple(module.theta.tolist())
    tolerance = 1e-9 if kind in ("random", "smooth") else 1e-5
    for n, image in enumerate(x.flatten(2).numpy()):
        expected = reference_mask(image, module, options, theta, separate_solves)
        np.testing.assert_allclose(masks[n], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("options", VARIANTS, ids=variant_name)
@pytest.mark.parametrize("reading", ACTING)
def test_gradcheck_for_x_and_every_parameter(reading: Any, options: dict[str, Any]) -> None:
    module = GPCA(9, **options, reading=reading).double()
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(2, 9, 3, 2, dtype=torch.float64, generator=generator).mul_(0.5)
    module(x)  # measures theta, where the reading asks for that
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    names = [name for name, _ in module.named_parameters()]
    assert ("raw_gain" in names) == READINGS[reading].gain

    def forward(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (x,))

    values = [p.detach().clone().requires_grad_() for p in module.parameters()]
    assert torch.autograd.gradcheck(forward, (x.requires_grad_(), *values))


@pytest.mark.parametrize("reading", ["unit-center", "auto"])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-3, 1e3])
def test_dead_and_tiny_channels_are_finite(reading: Any, scale: float) -> None:
    x = torch.randn(2, 12, 4, 4, generator=torch.Generator().manual_seed(1))
    x[:, :5] *= scale
    x.requires_grad_()
    module = GPCA(12, reading=reading)
    (module(x) * torch.randn(2, 12, 4, 4)).sum().backward()
    for gradient in (x.grad, *(p.grad for p in module.parameters())):
        assert gradient is not None
        assert gradient.isfinite().all()


def test_unit_divides_each_channel_by_its_norm_and_leaves_dead_ones() -> None:
    x = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [SMALLEST_NORM / 2, 0.0]]])
    expected = torch.tensor([[[0.6, 0.8], [0.0, 0.0], [0.5, 0.0]]], dtype=torch.float64)
    torch.testing.assert_close(scale_channels(x, "unit"), expected, rtol=1e-6, atol=0)


def test_the_scale_of_a_channel_does_not_matter_to_unit(maps: Callable[..., Tensor]) -> None:
    x = maps("random", channels=12)
    factors = torch.rand(2, 12, 1, 1, dtype=torch.float64) + 0.1
    module = GPCA(12, reading="unit").double()
    torch.testing.assert_close(mask_of(module, x * factors), mask_of(module, x), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("options", "others"), list(zip(VARIANTS, (11, 11, 4, 3), strict=True)))
def test_the_gain_starts_at_the_number_of_others(options: dict[str, Any], others: int) -> None:
    assert GPCA(12, **options, gain=True).scalars()["gain"] == pytest.approx(others, rel=1e-6)


def test_the_gain_starts_as_the_sum(maps: Callable[..., Tensor]) -> None:
    x = maps("smooth", channels=12)
    for options in ({"variant": "full"}, {"variant": "mha", "group_size": 4}):
        gained = mask_of(GPCA(12, **options, reading="unit-gain").double(), x)
        summed = mask_of(GPCA(12, **options, reading="unit-sum").double(), x)
        torch.testing.assert_close(gained, summed, rtol=0, atol=1e-6)


def test_center_removes_the_mean_of_every_image(maps: Callable[..., Tensor]) -> None:
    A, _, _ = GPCA(12, reading="unit-center").posterior(maps("smooth", channels=12))
    torch.testing.assert_close(A.mean(dim=1), torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-12)


def test_literal_is_the_default_and_true_and_false_are_former_names() -> None:
    x = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(2))
    assert torch.equal(mask_of(GPCA(8), x), mask_of(GPCA(8, reading="literal"), x))
    assert torch.equal(mask_of(GPCA(8, normalize=True), x), mask_of(GPCA(8, normalize="size"), x))
    assert torch.equal(mask_of(GPCA(8, normalize=False), x), mask_of(GPCA(8), x))
    assert list(GPCA(8).state_dict()) == ["raw_theta"]
    assert list(GPCA(8, "fixed").state_dict()) == ["fixed_theta"]
    assert list(GPCA(8, "no-prior").state_dict()) == ["mu", "log_sigma2"]


def test_a_single_option_goes_on_top_of_the_reading() -> None:
    module = GPCA(8, reading="unit-center", center=False, theta=(1, 2, 3, 4))
    assert (module.normalize, module.center, module.gain is not None) == ("unit", False, True)
    torch.testing.assert_close(module.theta, torch.tensor([1.0, 2, 3, 4]).double(), rtol=1e-6, atol=0)
    assert GPCA(8, reading="unit-gain", gain=False).raw_gain is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reading": "units"}, "reading must be one of literal, unit"),
        ({"normalize": "l2"}, "normalize must be one of none, unit, size"),
        ({"theta": "median"}, "theta must be four numbers or auto"),
        ({"gain": True, "reduction": "sum"}, "reduction must be mean"),
        ({"reading": "unit-gain", "reduction": "sum"}, "reduction must be mean"),
        *(
            ({"variant": "no-prior", **option}, f"{next(iter(option))} is an option of variant full")
            for option in ({"theta": "auto"}, {"gain": True}, {"center": True}, {"normalize": "unit"})
        ),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPCA(8, **arguments)


# -- theta: auto -------------------------------------------------------------------------------------------


def plain_median(x: np.ndarray) -> float:
    def lower(values: list[float]) -> float:
        return sorted(values)[(len(values) - 1) // 2]

    return lower([lower([((a - b) ** 2).sum() for a, b in itertools.combinations(image, 2)]) for image in x])


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_median_distance_is_that_of_all_pairs(batch: int, maps: Callable[..., Tensor]) -> None:
    x = maps("random", channels=7, batch=batch).flatten(2)
    assert median_distance(x).item() == pytest.approx(plain_median(x.numpy()), rel=1e-12)


@pytest.mark.parametrize("options", VARIANTS, ids=variant_name)
def test_auto_measures_theta1_on_the_first_training_batch_only(
    options: dict[str, Any], maps: Callable[..., Tensor]
) -> None:
    x = maps("random", channels=8)
    module = GPCA(8, **options, theta="auto").double().eval()
    module(x)
    torch.testing.assert_close(module.theta, torch.tensor([1, 1, 1e-4, 1]).double(), rtol=1e-6, atol=0)
    module.train()(torch.ones_like(x))  # equal channels have no distance
    assert module.theta_waits == 1
    module(x)
    assert module.theta_waits == 0
    measured = module.theta[1].item()
    assert measured == pytest.approx(1 / plain_median(x.flatten(2).numpy()), rel=1e-9)
    module(10 * x)
    assert module.theta[1].item() == measured


def test_auto_continues_bit_for_bit_from_a_state_dict(maps: Callable[..., Tensor]) -> None:
    first, second = maps("random", channels=8).float(), maps("smooth", channels=8).float()
    module = GPCA(8, reading="auto")
    resumed_before, resumed_after = copy.deepcopy(module), GPCA(8, reading="auto")
    module(first)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    resumed_after.load_state_dict(torch.load(file, weights_only=True), strict=True)
    resumed_before(first)
    masks = [mask_of(m, second) for m in (module, resumed_after, resumed_before)]
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])


def test_scalars_are_the_learned_numbers() -> None:
    assert set(GPCA(8).scalars()) == {"theta0", "theta1", "theta2", "theta3"}
    assert GPCA(8, reading="unit-gain").scalars()["gain"] == pytest.approx(7)
    assert GPCA(8, "no-prior").scalars() == {}
