"""GPCA, Gaussian process embedded channel attention, and its variants."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from gpca.base import ChannelAttention
from gpca.beta import expected_sigmoid
from gpca.neighbours import Groups, Neighbours, Windows
from gpca.readings import (
    SMALL,
    Normalize,
    ReadingName,
    Reduction,
    Theta,
    check_choice,
    choose_options,
    median_distance,
    scale_channels,
)
from gpca.registry import register_attention

Variant = Literal["full", "fixed", "no-prior", "local", "mha"]

LEARNED_START = (1.0, 1.0, 1.0, 1.0)
FIXED_THETA = (1.0, 64.0, 0.0, 1.0)
#: With theta "auto", until a training batch has set theta1.
AUTO_START = (1.0, 1.0, SMALL, 1.0)
KERNEL_VARIANTS: tuple[Variant, ...] = ("full", "fixed", "local", "mha")


class Posterior(NamedTuple):
    """Mean A and variance B of u_c ~ N(A_c, B_c), (N, C) each; a (N, C, C) when it was asked for."""

    A: Tensor
    B: Tensor
    a: Tensor | None = None


@register_attention("gpca")
class GPCA(ChannelAttention):
    """Gaussian process channel attention: each channel is weighed by how it explains the others.

    K_cc' = t0 exp(-t1 |x_c - x_c'|^2) + t2 + t3 x_c.x_c'        t_i = exp(raw_i)
    a_c = K_{c,-c} (K_{-c,-c} + I/delta)^-1
    A_c = 1/(C-1) sum_{c' != c} a_{c',c}          B_c = K_cc - a_c K_{c,-c}^T
    v_c = sigmoid(A_c / sqrt(1 + pi/8 B_c))       y_c = v_c x_c

    Xie, Ma, Chang, Zhang and Guo, "GPCA: A Probabilistic Framework for Gaussian Process Embedded Channel
    Attention", TPAMI 2021. `gpca.posterior` says how one Cholesky factor gives all the a_c.

    Variants:
        full: all channels explain each other; 4 parameters.
        fixed: the same with a given theta that is not learned; no parameters.
        no-prior: no Gaussian process: A_c and ln B_c are parameters and the input is not looked at;
            2C parameters, all masks 0.5 at the start.
        local: each channel is explained by its nearest neighbours in channel order; 4 parameters.
        mha: groups of 16 consecutive channels, theta shared; 4 parameters.

    Shapes: x (N, C, H, W) -> (N, C, H, W), in the dtype of x. Inside all is float64, with autocast
    switched off.

    Numerics: where a Cholesky factor needs more noise than 1/delta, that sample alone gets more (see
    `gpca.posterior.JITTER`), and B accounts for it. NaN or infinity makes its own sample NaN, no other.

    Readings: the paper leaves open on which scale the kernel sees the channels, and taken literally its
    mask is almost constant. `reading` chooses a combination of `normalize`, `theta`, `reduction`, `gain` and
    `center`. Each of these can also be set by itself, on top of the reading.

        literal      the equations above as printed; all masks near 0.5. The default: on real birds no other
                     reading found more than that by more than the noise (docs/gpca-on-real-birds.md)
        unit         normalize=unit, theta=(1, 8, 1e-4, 1)
        unit-sum     the same, reduction=sum
        unit-gain    the same, gain=True
        unit-center  the same, gain=True, center=True
        auto         theta=auto

    Departs from the paper:
        - All C systems are solved by one factor; the numbers are the same.
        - theta starts at (1, 1, 1, 1): the paper does not say where.
        - `reduction`, `normalize`, `gain` and `center` other than their literal values are our readings.
        - The details of local and mha are our reading (`gpca.neighbours`).

    Args:
        channels: C, the number of channels of the input, at least 2.
        variant: one of the above.
        delta: precision of the noise of the process.
        reduction: "mean" is the paper's equation; "sum" leaves out the 1/(C-1), which spreads the masks.
        normalize: what the kernel sees of x. "none": x itself; "unit": each channel divided by its own L2
            norm, where a dead channel stays 0; "size": x / sqrt(HW). True and False are former names of
            "size" and "none".
        theta: (t0, t1, t2, t3): where learning starts, or for "fixed" the values, (1, 64, 0, 1) unless they
            are given or the reading has its own. "auto": t2 = 1e-4, and t1 = 1 / the median squared distance
            between channels, measured on the first batch in training mode (`gpca.readings.median_distance`).
            The buffer `theta_waits` is 1 until then, so that a state_dict says whether t1 was measured. A
            batch whose channels are all equal is passed over, and the next one is measured.
        group_size: channels in a group of "mha", 16 unless given.
        window: odd number of channels in a window of "local", by ECA's rule unless given.
        reading: one of the above.
        gain: multiply A by a learned factor exp(raw_gain). It starts at the number of channels that explain
            one (C-1; group_size-1; window-1), so that A starts as the sum. One more parameter.
        center: take the mean of A over the channels away, image by image, so that masks lie around 0.5.

    Raises:
        ValueError: an argument is out of range, belongs to another variant, or does not fit the others.

    >>> module = GPCA(200, reading="unit", gain=True)
    >>> {name: round(value, 4) for name, value in module.scalars().items()}
    {'theta0': 1.0, 'theta1': 8.0, 'theta2': 0.0001, 'theta3': 1.0, 'gain': 199.0}
    """

    min_channels: ClassVar[int] = 2
    no_weight_decay: ClassVar[tuple[str, ...]] = ("raw_theta", "raw_gain")
    recorded_options: ClassVar[Mapping[str, object]] = {"reading": "literal"}
    fixed_theta: Tensor
    theta_waits: Tensor | None
    raw_gain: nn.Parameter | None

    def __init__(
        self,
        channels: int,
        variant: Variant = "full",
        delta: float = 1e6,
        reduction: Reduction | None = None,
        normalize: Normalize | bool | None = None,
        theta: Theta | None = None,
        group_size: int | None = None,
        window: int | None = None,
        reading: ReadingName = "literal",  # the one place of the default; runs record which they used
        gain: bool | None = None,
        center: bool | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        check_choice("variant", variant, get_args(Variant))
        if not (delta > 0 and math.isfinite(delta)):
            raise ValueError(f"delta must be positive and finite, got {delta}")
        _check_belongs("group_size", group_size, variant, ("mha",))
        _check_belongs("window", window, variant, ("local",))
        if group_size is not None and group_size < 2:
            raise ValueError(f"group_size must be at least 2, got {group_size}")
        if window is not None and (window < 3 or window % 2 == 0):
            raise ValueError(f"window must be odd and at least 3, got {window}")

        self.variant = variant
        self.delta = float(delta)
        self.reading = reading
        for name, value in (("theta", theta), ("gain", gain or None), ("center", center or None)):
            _check_belongs(name, value, variant, KERNEL_VARIANTS)
        if not isinstance(normalize, bool):  # a former name, which no-prior took and ignored
            _check_belongs("normalize", normalize, variant, KERNEL_VARIANTS)
        chosen = choose_options(
            reading, normalize=normalize, theta=theta, reduction=reduction, gain=gain, center=center
        )
        self.normalize, self.reduction, self.center = chosen.normalize, chosen.reduction, chosen.center
        neighbours: dict[str, Callable[[], Neighbours]] = {
            "full": lambda: Groups(channels, channels),
            "fixed": lambda: Groups(channels, channels),
            "local": lambda: Windows(channels, window or Windows.default_size(channels)),
            "mha": lambda: Groups(channels, group_size or 16),
        }
        self._neighbours = neighbours[variant]() if variant in neighbours else None
        self.register_buffer("theta_waits", None)
        self.register_parameter("raw_gain", None)

        if self._neighbours is None:
            self.mu = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
            self.log_sigma2 = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
            return
        start = _kernel_values(chosen.theta, FIXED_THETA if variant == "fixed" else LEARNED_START)
        if chosen.theta == "auto":
            self.theta_waits = torch.ones((), device=device, dtype=torch.uint8)
        if variant == "fixed":
            self.register_buffer("fixed_theta", start.to(device, dtype))
        else:
            if not (start > 0).all():
                raise ValueError(f"theta must be positive to be learned as exp(raw), got {theta}")
            self.raw_theta = nn.Parameter(start.log().to(device, dtype))
        if chosen.gain:
            others = torch.tensor(float(self._neighbours.others))
            self.raw_gain = nn.Parameter(others.log().to(device, dtype))

    @property
    def theta(self) -> Tensor:
        """(t0, t1, t2, t3) as they are now, in float64.

        Raises:
            ValueError: the variant is "no-prior", which has no kernel.
        """
        if self.variant == "no-prior":
            raise ValueError("the variant no-prior has no theta")
        if self.variant == "fixed":
            return self.fixed_theta.double()
        return self.raw_theta.double().exp()

    @property
    def gain(self) -> Tensor | None:
        """The learned factor of A as it is now, in float64; None where there is none."""
        return None if self.raw_gain is None else self.raw_gain.double().exp()

    def scalars(self) -> dict[str, float]:
        """theta0 to theta3, and gain, where the options give them."""
        theta = [] if self._neighbours is None else self.theta.tolist()
        values = {f"theta{i}": value for i, value in enumerate(theta)}
        return values if self.gain is None else {**values, "gain": self.gain.item()}

    def posterior(self, x: Tensor, weights: bool = False) -> Posterior:
        """A and B (N, C), in float64, for the maps x (N, C, H, W); A with the options `gain` and `center`.

        With `weights` also a (N, C, C), detached: a[n, c, i] is what channel i contributes to c.

        Raises:
            ValueError: x has the wrong shape; `weights` of "no-prior", which has none.
            TypeError: x does not hold floating-point numbers.
        """
        self.check_input(x)
        if self._neighbours is None:
            if weights:
                raise ValueError("weights: the variant no-prior has no matrix a")
            shape = x.shape[:2]
            return Posterior(self.mu.double().expand(shape), self.log_sigma2.double().exp().expand(shape))

        with _autocast_off(x.device.type):
            channels = scale_channels(x.flatten(2), self.normalize)
            if self.training and self.theta_waits is not None and self.theta_waits:
                self._measure_theta(channels)
            A, B = self._neighbours.posterior(channels, self.theta, self.delta, mean=self.reduction == "mean")
            if self.gain is not None:
                A = A * self.gain
            if self.center:
                A = A - A.mean(dim=1, keepdim=True)
            if not weights:
                return Posterior(A, B)
            with torch.no_grad():
                return Posterior(A, B, self._neighbours.weights(channels, self.theta, self.delta))

    @torch.no_grad()
    def _measure_theta(self, channels: Tensor) -> None:
        """theta1 = 1 / the median squared distance, where that is a positive number."""
        assert self.theta_waits is not None
        median = median_distance(channels)
        if median > 0 and median.isfinite():
            if self.variant == "fixed":
                self.fixed_theta[1] = 1 / median
            else:
                self.raw_theta[1] = -median.log()
            self.theta_waits.zero_()

    def compute_mask(self, x: Tensor) -> Tensor:
        A, B, _ = self.posterior(x)
        return expected_sigmoid(A, B)

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, variant={self.variant!r}, delta={self.delta:g}, "
            f"reading={self.reading!r}, reduction={self.reduction!r}, normalize={self.normalize!r}, "
            f"gain={self.raw_gain is not None}, center={self.center}"
        )


def _autocast_off(device_type: str) -> AbstractContextManager[object]:
    if torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


def _check_belongs(argument: str, value: object, variant: Variant, variants: tuple[Variant, ...]) -> None:
    if value is not None and variant not in variants:
        raise ValueError(f"{argument} is an option of variant {', '.join(variants)}, not of {variant}")


def _kernel_values(theta: Theta | None, default: Sequence[float]) -> Tensor:
    if isinstance(theta, str):
        if theta != "auto":
            raise ValueError(f"theta must be four numbers or auto, got {theta!r}")
        theta = AUTO_START
    values = torch.tensor(default if theta is None else [float(t) for t in theta])
    if values.shape != (4,):
        raise ValueError(f"theta must be four numbers, got {theta}")
    if not (values.isfinite() & (values >= 0)).all():
        raise ValueError(f"theta must be finite and not negative, got {theta}")
    if not values[[0, 2, 3]].any():
        raise ValueError(f"theta must not be 0 in all of theta0, theta2 and theta3, got {theta}")
    return values
