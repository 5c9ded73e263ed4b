"""The report as one HTML file that holds everything it shows and loads nothing.

Templates, style and script lie in `templates/`. Names of classes, files and runs are escaped; a content
security policy lets the page run its own script, known by its digest, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from wsol.version import __version__

TEMPLATES = Path(__file__).with_name("templates")


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
class MaskSection:
    """Charts and a table on the attention masks; the first column names the run."""

    charts: Sequence[Markup]
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
    gallery_note: str
    class_columns: Sequence[tuple[str, bool]]  # (heading, whether its cells are numbers)
    class_rows: Sequence[Sequence[str]]
    charts: Sequence[Markup] = ()
    masks: MaskSection | None = None
    warnings: Sequence[str] = field(default=())


def render(page: Page) -> str:
    """The page as HTML."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    css = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    js = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    sections = [
        ("results", "Results"),
        *([("charts", "Curves")] if page.charts else []),
        ("gallery", "Gallery"),
        ("classes", "Classes"),
        *([("masks", "Masks")] if page.masks else []),
        ("config", "Configuration"),
    ]
    return environment.get_template("page.html").render(
        vars(page)
        | {
            "policy": (
                f"default-src 'none'; img-src data:; style-src '{_digest(css)}'; script-src '{_digest(js)}'; "
                "base-uri 'none'; form-action 'none'"
            ),
            "css": Markup(css),
            "js": Markup(js),
            "data": safe_json(page.gallery),
            "sections": sections,
            "num_thresholds": len(page.gallery["thresholds"]),
            "version": __version__,
            "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        }
    )


def safe_json(values: Any) -> Markup:
    """JSON that may stand inside a script element: no text in it can end the element or start another."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
