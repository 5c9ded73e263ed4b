"""GPCA, Gaussian process embedded channel attention, and its variants."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from gpca.base import ChannelAttention
from gpca.beta import expected_sigmoid
from gpca.neighbours import Groups, Neighbours, Windows
from gpca.registry import register_attention

Variant = Literal["full", "fixed", "no-prior", "local", "mha"]
Reduction = Literal["mean", "sum"]

LEARNED_START = (1.0, 1.0, 1.0, 1.0)
FIXED_THETA = (1.0, 64.0, 0.0, 1.0)


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

    Departs from the paper:
        - All C systems are solved by one factor; the numbers are the same.
        - theta starts at (1, 1, 1, 1): the paper does not say where.
        - `reduction="sum"` leaves out the 1/(C-1), with which a mask is almost constant for many channels.
        - `normalize=True` divides x by sqrt(HW), which keeps the t0 term from vanishing on large maps.
        - The details of local and mha are our reading (`gpca.neighbours`).

    Args:
        channels: C, the number of channels of the input, at least 2.
        variant: one of the above.
        delta: precision of the noise of the process.
        reduction: "mean" is the paper's equation; "sum" spreads the masks.
        normalize: divide x by sqrt(HW) before the kernel.
        theta: (t0, t1, t2, t3): where learning starts, or for "fixed" the values, (1, 64, 0, 1) unless
            given.
        group_size: channels in a group of "mha", 16 unless given.
        window: odd number of channels in a window of "local", by ECA's rule unless given.

    Raises:
        ValueError: an argument is out of range, or belongs to another variant.
    """

    min_channels: ClassVar[int] = 2
    no_weight_decay: ClassVar[tuple[str, ...]] = ("raw_theta",)
    fixed_theta: Tensor

    def __init__(
        self,
        channels: int,
        variant: Variant = "full",
        delta: float = 1e6,
        reduction: Reduction = "mean",
        normalize: bool = False,
        theta: Sequence[float] | None = None,
        group_size: int | None = None,
        window: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        _check_choice("variant", variant, get_args(Variant))
        _check_choice("reduction", reduction, get_args(Reduction))
        if not (delta > 0 and math.isfinite(delta)):
            raise ValueError(f"delta must be positive and finite, got {delta}")
        _check_belongs("theta", theta, variant, ("full", "fixed", "local", "mha"))
        _check_belongs("group_size", group_size, variant, ("mha",))
        _check_belongs("window", window, variant, ("local",))
        if group_size is not None and group_size < 2:
            raise ValueError(f"group_size must be at least 2, got {group_size}")
        if window is not None and (window < 3 or window % 2 == 0):
            raise ValueError(f"window must be odd and at least 3, got {window}")

        self.variant = variant
        self.delta = float(delta)
        self.reduction = reduction
        self.normalize = normalize
        neighbours: dict[str, Callable[[], Neighbours]] = {
            "full": lambda: Groups(channels, channels),
            "fixed": lambda: Groups(channels, channels),
            "local": lambda: Windows(channels, window or Windows.default_size(channels)),
            "mha": lambda: Groups(channels, group_size or 16),
        }
        self._neighbours = neighbours[variant]() if variant in neighbours else None

        if variant == "no-prior":
            self.mu = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
            self.log_sigma2 = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
        elif variant == "fixed":
            self.register_buffer("fixed_theta", _kernel_values(theta, FIXED_THETA).to(device, dtype))
        else:
            start = _kernel_values(theta, LEARNED_START)
            if not (start > 0).all():
                raise ValueError(f"theta must be positive to be learned as exp(raw), got {theta}")
            self.raw_theta = nn.Parameter(start.log().to(device, dtype))

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

    def posterior(self, x: Tensor, weights: bool = False) -> Posterior:
        """A and B (N, C), in float64, for the maps x (N, C, H, W).

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
            channels = x.flatten(2)
            if self.normalize:
                channels = channels.double() / math.sqrt(channels.shape[-1])
            A, B = self._neighbours.posterior(channels, self.theta, self.delta, mean=self.reduction == "mean")
            if not weights:
                return Posterior(A, B)
            with torch.no_grad():
                return Posterior(A, B, self._neighbours.weights(channels, self.theta, self.delta))

    def compute_mask(self, x: Tensor) -> Tensor:
        A, B, _ = self.posterior(x)
        return expected_sigmoid(A, B)

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, variant={self.variant!r}, delta={self.delta:g}, "
            f"reduction={self.reduction!r}, normalize={self.normalize}"
        )


def _autocast_off(device_type: str) -> AbstractContextManager[object]:
    if torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


def _check_choice(argument: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(choices)}, got {value!r}")


def _check_belongs(argument: str, value: object, variant: Variant, variants: tuple[Variant, ...]) -> None:
    if value is not None and variant not in variants:
        raise ValueError(f"{argument} is an option of variant {', '.join(variants)}, not of {variant}")


def _kernel_values(theta: Sequence[float] | None, default: Sequence[float]) -> Tensor:
    values = torch.tensor(default if theta is None else [float(t) for t in theta])
    if values.shape != (4,):
        raise ValueError(f"theta must be four numbers, got {theta}")
    if not (values.isfinite() & (values >= 0)).all():
        raise ValueError(f"theta must be finite and not negative, got {theta}")
    if not values[[0, 2, 3]].any():
        raise ValueError(f"theta must not be 0 in all of theta0, theta2 and theta3, got {theta}")
    return values
