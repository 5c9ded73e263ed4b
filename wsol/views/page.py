"""What the report shows, as a record, and its HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsol.views.charts import Chart
from wsol.views.html_file import render_html, safe_json


@dataclass(frozen=True)
class Card:
    """A headline number, and what to compare it with."""

    label: str
    value: str
    unit: str = "%"
    note: str = ""


@dataclass(frozen=True)
class Cell:
    text: str
    best: bool = False


@dataclass(frozen=True)
class ResultRow:
    """A line of the table of results. tone: the run's colour in the charts, None for a baseline."""

    name: str
    protocol: str
    threshold: str
    cells: Sequence[Cell]
    tone: int | None = None
    baseline: bool = False


@dataclass(frozen=True)
class RunFacts:
    """What the page says of one run beside its numbers: cards, where it came from, its config."""

    name: str
    cards: Sequence[Card]
    origin: Sequence[tuple[str, str]]
    config: str


@dataclass(frozen=True)
class ClassRow:
    """A line of the table of classes; its name leads to the view of the class."""

    label: int
    name: str
    cells: Sequence[str]


@dataclass(frozen=True)
class PairRow:
    """Two classes that are taken for each other.

    told: how often, in words. points: what it costs, by run. shots: some of its images, by their place in the
    gallery.
    """

    labels: tuple[int, int]
    name: str
    told: Sequence[str]
    points: Sequence[str]
    shots: Sequence[int]


@dataclass(frozen=True)
class ConfusionSection:
    """The confusions of classes that cost most. columns: the headings of `PairRow.points`."""

    words: str
    columns: Sequence[str]
    rows: Sequence[PairRow]
    note: str


@dataclass(frozen=True)
class MaskSection:
    """What is said of the attention masks: by run in words, in charts, and in a table of runs."""

    words: Sequence[tuple[str, Sequence[str]]]  # (run, sentences)
    charts: Sequence[Chart]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


@dataclass(frozen=True)
class Page:
    """Everything that the page shows, ready to be shown."""

    title: str
    facts: Sequence[str]
    runs: Sequence[RunFacts]
    figures: Sequence[tuple[str, str]]  # (heading, what it means), in the order of a row's cells
    result_rows: Sequence[ResultRow]
    results_note: str
    gallery: Mapping[str, Any]  # from `wsol.views.gallery.pack_gallery`
    with_classes: bool  # whether a run predicts classes, so that it has a map for each
    gallery_note: str
    class_columns: Sequence[tuple[str, bool]]  # (heading, whether its cells are numbers)
    class_rows: Sequence[ClassRow]
    confusions: ConfusionSection | None = None
    charts: Sequence[Chart] = ()
    masks: MaskSection | None = None
    assets: str = ""  # the folder of large pictures beside the page; '' where the page holds everything
    warnings: Sequence[str] = field(default=())

    def sections(self) -> list[tuple[str, str]]:
        """(anchor, heading) of what is there."""
        return [
            ("results", "Results"),
            *([("charts", "Curves")] if self.charts else []),
            ("gallery", "Gallery"),
            ("classes", "Classes"),
            *([("confusions", "Confusions")] if self.confusions else []),
            *([("masks", "Attention")] if self.masks else []),
            ("config", "Configuration"),
        ]

    def all_charts(self) -> list[Chart]:
        return [*self.charts, *(self.masks.charts if self.masks else [])]


def render(page: Page) -> str:
    """The page as HTML."""
    return render_html(
        "runs.html",
        ["page.js", "gallery.js", "views.js"],
        {
            **vars(page),
            "data": safe_json(page.gallery),
            "sections": page.sections(),
            "num_thresholds": len(page.gallery["thresholds"]),
        },
        beside=bool(page.assets),
    )
