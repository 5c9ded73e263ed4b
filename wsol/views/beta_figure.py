"""The paper's figure of the beta distribution of a mask value, and of what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wsol.views.figure_style import PAGE, legend_below, line_look, new_figure, paper_style, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpca.beta import Beta

PAPER = ((0.5, 0.5), (2, 2), (2, 5), (5, 1), (10, 3))
IN_A_ROW = 3  # panels


def draw_beta(path: Path | str, parameters: Sequence[tuple[float, float]] = PAPER) -> None:
    """The beta density p(v) and its approximations q(v), one panel for each pair (a, b).

    The legend of a panel gives KL(p || q). The name of the file ends with .png, .pdf or .svg.

    >>> draw_beta("beta.pdf")  # doctest: +SKIP
    """
    from gpca.beta import Beta

    across = min(len(parameters), IN_A_ROW)
    down = -(-len(parameters) // across)
    with paper_style():
        figure = new_figure(PAGE * across / IN_A_ROW, 2.7 * down)
        for place, (a, b) in enumerate(parameters, start=1):
            _draw_densities(figure.add_subplot(down, across, place), Beta(a, b))
        write_figure(figure, Path(path), parents=True)


def _draw_densities(axes: Axes, beta: Beta) -> None:
    import torch

    from gpca.beta import APPROXIMATIONS, Laplace, kl_divergence

    v = torch.linspace(0.002, 0.998, 499, dtype=torch.float64)
    axes.plot(v, beta.log_prob(v).exp(), color="black", linewidth=2, label="$p$")
    for place, approximation in enumerate(APPROXIMATIONS):
        q = approximation(beta)
        label = f"${q.symbol}$, KL {kl_divergence(beta, q):.4f}"
        axes.plot(v, q.log_prob(v).exp(), label=label, **line_look(place))
    # A beta density may be infinite at the ends: the sharp peak of the Laplace sets the height.
    top = 1.1 * Laplace(beta).log_prob(torch.tensor(beta.mean)).exp().item()
    axes.set(title=f"a = {beta.a:g}, b = {beta.b:g}", xlabel="v", ylim=(0, top))
    legend_below(axes)
