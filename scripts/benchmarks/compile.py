"""Training steps on the CPU with torch.compile, measured as in `cpu`. Compiling takes minutes."""

from scripts.benchmarks.cpu import NETWORKS, Variant, compare
from scripts.benchmarks.timing import Ratio

VARIANTS: tuple[Variant, ...] = (
    ("compile",),
    ("channels_last", "compile"),
    ("channels_last", "compile", "freeze"),
)


def run() -> list[Ratio]:
    return [ratio for network in NETWORKS for ratio in compare(network, VARIANTS)]
