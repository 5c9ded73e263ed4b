"""A comparison of runs: rows of figures over seeds, and a caption, in every format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from wsol.scoring.significance import ALPHA, Spread
from wsol.views import comparison_formats
from wsol.views.comparison_figure import draw_comparison
from wsol.views.comparison_page import comparison_page

CHOSEN_MARKS = {"threshold": "†", "checkpoint": "‡"}


@dataclass(frozen=True)
class ComparedRow:
    """One line of the comparison.

    data: what the figures were measured on; only rows of one backbone and the same data compete.
    protocol: how they were measured. p: by figure, against the reference; None where no test is possible.
    best: the figures in which this row is the best of its backbone. chosen: what was chosen on the test
    images, of `threshold` and `checkpoint`. note: what else a reader must know of the row.
    """

    method: str
    backbone: str
    source: str
    data: str
    protocol: str
    figures: dict[str, Spread]
    published: bool = False
    p: dict[str, float | None] = field(default_factory=dict)
    best: frozenset[str] = frozenset()
    chosen: tuple[str, ...] = ()
    note: str = ""

    @property
    def marked_source(self) -> str:
        """The source, with a mark for each thing that was chosen on the test images."""
        return self.source + "".join(CHOSEN_MARKS[what] for what in self.chosen)

    def significant(self, figure: str) -> bool:
        value = self.p.get(figure)
        return value is not None and value < ALPHA

    def competes_with(self, other: ComparedRow) -> bool:
        return (self.backbone, self.data) == (other.backbone, other.data)

    def testable(self, figure: str) -> bool:
        """Whether a t-test may use it: several runs, or a single figure because no more was published."""
        return figure in self.figures and (self.published or self.figures[figure].n > 1)


@dataclass(frozen=True)
class Comparison:
    """Runs side by side; printed, it is a Markdown table. caption: what a reader of the table must know."""

    rows: tuple[ComparedRow, ...]
    caption: str

    def to_markdown(self) -> str:
        return comparison_formats.to_markdown(self.rows, self.caption)

    def to_latex(self) -> str:
        """A `tabular` for a paper; it needs the packages booktabs and amsmath."""
        return comparison_formats.to_latex(self.rows, self.caption)

    def to_csv(self) -> str:
        """One line for each row, with mean, deviation, number of runs and p-value of each figure."""
        return comparison_formats.to_csv(self.rows)

    def to_page(self) -> str:
        """One HTML file in the style of the report; it loads nothing."""
        return comparison_page(self.rows, self.caption)

    def draw(self, path: Path) -> None:
        """A figure as .png, .pdf or .svg: a panel for each figure, a dot with its deviation for each row."""
        draw_comparison(self.rows, self.caption, path)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return comparison_formats.to_html(self.rows, self.caption)
