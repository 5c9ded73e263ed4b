"""One look for the figures that go into a paper: type, sizes, colours, and the files they are written to.

Widths are those of a column (3.5 inches) and of a page (7.16 inches) of a two-column paper, and letters have
its size, so that a figure is placed without being scaled. The colours are those of Okabe and Ito: they differ
for colour-blind readers, and lines also differ in their dashes, which a grey print keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from wsol.errors import ConfigError
from wsol.runs.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Format = Literal["png", "pdf", "svg"]
FORMATS: tuple[Format, ...] = get_args(Format)

COLUMN, PAGE, HEIGHT = 3.5, 7.16, 2.4  # inches
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)), (0, (9, 2)))
GREY = "#6E6E6E"
SHADE = "#EDEDED"

_SETTINGS: Any = {  # matplotlib types the keys one by one, and differently in each version
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "axes.formatter.useoffset": False,
    "pdf.fonttype": 42,  # letters stay letters, which publishers ask for
    "svg.fonttype": "none",
    "svg.hashsalt": "wsol",  # equal figures give equal files
    "savefig.dpi": 300,
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Figures that are made and saved inside have this look; nothing outside changes."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def line_look(place: int) -> dict[str, Any]:
    """Colour and dashes of the line number `place`."""
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)]}


def legend_below(axes: Axes) -> None:
    """A legend under the label of the x axis, where it hides no line."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=2)


def without_math(name: str) -> str:
    """A name as matplotlib prints it: what stands between two dollars would be read as a formula."""
    return name.replace("$", r"\$")


def new_figure(width: float = COLUMN, height: float = HEIGHT, title: str = "") -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if title:
        figure.suptitle(without_math(title))
    return figure


def check_formats(formats: Sequence[str]) -> tuple[Format, ...]:
    """The formats, each once. Raises ConfigError for one that figures cannot have."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        named = " ".join(unknown).strip() or "none"
        raise ConfigError(f"formats {named}: figures are written as {', '.join(FORMATS)}")
    return tuple(dict.fromkeys(formats))  # type: ignore[arg-type]


def save_figure(figure: Figure, folder: Path, name: str, formats: Sequence[Format]) -> list[Path]:
    """`name`.png and so on in the folder."""
    paths = [folder / f"{name}.{suffix}" for suffix in formats]
    for path in paths:
        write_figure(figure, path)
    return paths


def write_figure(figure: Figure, path: Path, parents: bool = False) -> None:
    """One file, in the format that its name ends with; files of equal figures do not differ from day to day.

    Raises ConfigError for another ending.
    """
    (suffix,) = check_formats([path.suffix.removeprefix(".").lower()])
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with paper_style(), replacing(path, parents=parents) as draft:
        figure.savefig(draft, format=suffix, metadata=undated.get(suffix))
