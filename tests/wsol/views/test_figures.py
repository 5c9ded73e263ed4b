"""Every figure for a paper: the same look, three formats, equal files for equal figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from wsol.errors import ConfigError
from wsol.scoring.significance import Spread
from wsol.views import beta_figure, figure_style
from wsol.views.beta_figure import draw_beta
from wsol.views.comparison import ComparedRow, Comparison
from wsol.views.curves import draw_curves
from wsol.views.figure_style import COLOURS, FORMATS, PAGE

HISTORY = [{"epoch": e, "loss": 1 / e, "accuracy": 0.5, "val_top1_loc": 0.25, "lr": 0.1} for e in (1, 2, 3)]
ROWS = tuple(
    ComparedRow(f"M{i}", "vgg16", "ours, 3 runs", "d", "gpca", {"top1_loc": Spread(50.0 + i, 1.0, 3)})
    for i in range(3)
)
FIGURES: dict[str, Callable[[Path], None]] = {
    "curves": lambda path: draw_curves(HISTORY, path, "a run"),
    "beta": lambda path: draw_beta(path, [(2, 5)]),
    "comparison": Comparison(ROWS, "what a reader must know").draw,
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_figure_in_every_format_twice_the_same(name: str, suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}{i}.{suffix}" for i in range(2)]
    before = dict(mpl.rcParams)
    for path in paths:
        FIGURES[name](path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix])
    assert dict(mpl.rcParams) == before, "the style is left behind nowhere"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_fits_a_page_and_has_letters_that_stay_letters(name: str, tmp_path: Path) -> None:
    FIGURES[name](tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    width = re.search(r'width="([\d.]+)pt"', text)
    assert width
    assert float(width[1]) <= 72 * PAGE + 0.1
    assert "<text" in text
    assert COLOURS[0].lower() in text, "the first colour of the style"


def test_a_format_that_figures_cannot_have_is_named(tmp_path: Path) -> None:
    for name in ("f.jpg", "f"):
        with pytest.raises(ConfigError, match="figures are written as png, pdf, svg"):
            draw_beta(tmp_path / name, [(2, 5)])
    assert list(tmp_path.iterdir()) == []


def test_the_beta_figure_has_a_panel_per_pair_with_every_density(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Figure] = []
    write = figure_style.write_figure

    def keep(figure: Figure, path: Path, parents: bool = False) -> None:
        kept.append(figure)
        write(figure, path, parents)

    monkeypatch.setattr(beta_figure, "write_figure", keep)
    draw_beta(tmp_path / "beta.png", [(2, 5), (0.5, 0.5)])
    (figure,) = kept
    assert len(figure.axes) == 2
    for panel in figure.axes:
        labels = [line.get_label() for line in panel.get_lines()]
        assert len(labels) == 5
        assert labels[0] == "$p$"
    assert "KL 0.0150" in str(figure.axes[0].get_lines()[1].get_label())
