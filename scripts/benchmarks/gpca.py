"""How fast GPCA is, against its naive forms and against the network around it, and how far its masks spread.

`python scripts/benchmark.py gpca` measures the ratios. `python -m scripts.benchmarks.gpca`, from the root of
the repository, prints the spread of the masks of every attention.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, interpolate

from gpca import GPCA, READINGS, ChannelAttention, build_attention
from gpca.beta import expected_sigmoid
from gpca.posterior import gram
from gpca.readings import scale_channels
from scripts.benchmarks.timing import Ratio, readable, time_side_by_side

BATCH, CHANNELS, SIDE = 32, 200, 14


def smooth_maps(batch: int, channels: int, side: int) -> Tensor:
    """Random blobs like those of a class map: noise on a 5x5 grid, enlarged, with a ReLU."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(batch, channels, 5, 5, generator=generator)
    return interpolate(coarse, size=(side, side), mode="bicubic").relu()


def masks_by_separate_solves(x: Tensor, module: GPCA) -> Tensor:
    """The paper's equations as they stand: one linear system of size C-1 per channel."""
    K = gram(scale_channels(x.flatten(2), module.normalize).double(), module.theta)
    channels = K.shape[-1]
    noise = torch.eye(channels - 1, dtype=K.dtype) / module.delta
    A = torch.zeros(K.shape[:2], dtype=K.dtype)
    B = []
    for c in range(channels):
        others = torch.arange(channels) != c
        row = K[:, c, others]
        L = torch.linalg.cholesky(K[:, others][:, :, others] + noise)
        a = torch.cholesky_solve(row[..., None], L).squeeze(-1)
        A = A.index_add(1, others.nonzero().squeeze(1), a)
        B.append(K[:, c, c] - (a * row).sum(-1))
    return mask_from_sums(A, torch.stack(B, dim=1), module)


def masks_by_autograd(x: Tensor, module: GPCA) -> Tensor:
    """The closed form through one Cholesky factor, differentiated by autograd."""
    K = gram(scale_channels(x.flatten(2), module.normalize).double(), module.theta)
    L = torch.linalg.cholesky(K + torch.eye(K.shape[-1], dtype=K.dtype) / module.delta)
    P = torch.cholesky_inverse(L)
    w = 1 / P.diagonal(dim1=-2, dim2=-1)
    return mask_from_sums(1 - (P @ w[..., None]).squeeze(-1), w - 1 / module.delta, module)


def mask_from_sums(A: Tensor, B: Tensor, module: GPCA) -> Tensor:
    """The mask from the sums A and the variances B, with the options of the module's reading."""
    if module.reduction == "mean":
        A = A / (A.shape[1] - 1)
    if module.gain is not None:
        A = A * module.gain
    if module.center:
        A = A - A.mean(dim=1, keepdim=True)
    return expected_sigmoid(A, B.clamp_min(0))


def training_pass(masks: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    """Forward and backward of x * mask, between a network that gives x and one that sends back gradients."""
    upstream = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))

    def run_once() -> None:
        (x * masks(x)[:, :, None, None].to(x.dtype)).backward(upstream)

    return run_once


def run() -> list[Ratio]:
    from torchvision.models import resnet50

    module = GPCA(CHANNELS)
    x = smooth_maps(BATCH, CHANNELS, SIDE).requires_grad_()
    network: Any = resnet50(weights=None).train()
    images, labels = torch.randn(BATCH, 3, 224, 224), torch.arange(BATCH)

    readings = {name: GPCA(CHANNELS, reading=name) for name in READINGS}
    for reading in readings.values():
        reading(x)  # measures theta, where a reading asks for that
    passes: dict[str, Callable[[], None]] = {
        name: training_pass(reading.compute_mask, x) for name, reading in readings.items()
    }
    gpca_pass = passes["literal"]

    def resnet_step() -> None:
        cross_entropy(network(images), labels).backward()

    fast = time_side_by_side(
        {**passes, "autograd": training_pass(lambda x: masks_by_autograd(x, module), x)}, rounds=10
    )
    slow = time_side_by_side(
        {
            "gpca": gpca_pass,
            "solves": training_pass(lambda x: masks_by_separate_solves(x, module), x),
            "resnet": resnet_step,
        },
        rounds=2,
    )
    size = f"N={BATCH}, C={CHANNELS}, {SIDE}x{SIDE}, threads={torch.get_num_threads()}"
    return [
        Ratio(
            "C separate solves / gpca, forward and backward",
            slow["solves"] / slow["gpca"],
            120,
            "at least",
            f"{readable(slow['solves'])} / {readable(slow['gpca'])} ({size})",
        ),
        Ratio(
            "autograd through one Cholesky / gpca, forward and backward",
            fast["autograd"] / fast["literal"],
            1.4,
            "at least",
            f"{readable(fast['autograd'])} / {readable(fast['literal'])}",
        ),
        Ratio(
            "gpca / training step of a ResNet50 at 224",
            slow["gpca"] / slow["resnet"],
            0.015,
            "at most",
            f"{readable(slow['gpca'])} / {readable(slow['resnet'])}",
        ),
        *(
            Ratio(
                f"reading {name} / literal, forward and backward",
                fast[name] / fast["literal"],
                1.3,
                "at most",
                f"{readable(fast[name])} / {readable(fast['literal'])}",
            )
            for name in READINGS
            if name != "literal"
        ),
    ]


def print_spread() -> None:
    """Masks of freshly built attentions on smooth maps of C=200, 14x14."""
    x = smooth_maps(8, CHANNELS, SIDE)
    torch.manual_seed(0)
    gpca_options: list[dict[str, Any]] = [
        {},
        {"reduction": "sum"},
        {"normalize": "size"},
        {"reduction": "sum", "normalize": "size"},
        *({"reading": reading} for reading in READINGS if reading != "literal"),
        {"variant": "fixed"},
        {"variant": "local"},
        {"variant": "local", "reduction": "sum"},
        {"variant": "mha"},
        {"variant": "mha", "reduction": "sum"},
        {"variant": "no-prior"},
    ]
    rows: list[tuple[str, dict[str, Any]]] = [("gpca", options) for options in gpca_options]
    rows += [("se", {}), ("srp", {}), ("constant", {})]
    print("| attention | smallest | largest | std within an image |")
    print("|---|---|---|---|")
    for name, options in rows:
        attention = build_attention(name, CHANNELS, **options)
        attention(x)  # in training mode first: a reading may measure theta
        attention.eval()(x)
        assert isinstance(attention, ChannelAttention)
        mask = attention.mask
        assert mask is not None
        label = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
        print(f"| {label} | {mask.min():.4f} | {mask.max():.4f} | {mask.std(dim=1).mean():.5f} |")


if __name__ == "__main__":
    print_spread()
