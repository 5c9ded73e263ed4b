"""The page itself: one document, one style, one script. Nothing comes from another machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from wsol.data.image import SUFFIXES
from wsol.serving.answers import Answer
from wsol.serving.examples import Example
from wsol.serving.limits import LARGEST_PIXELS, LARGEST_UPLOAD
from wsol.serving.served_model import ServedModel
from wsol.version import __version__
from wsol.views.box_formats import BOX_FILES
from wsol.views.html_file import TEMPLATES as REPORT_TEMPLATES
from wsol.views.html_file import safe_json

TEMPLATES = Path(__file__).with_name("templates")

# The browser runs this server's script, and asks no other machine for anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_files(models: Sequence[ServedModel], examples: Sequence[Example]) -> dict[str, Answer]:
    """What the browser loads, by its path."""
    # The report's style comes first: its colours, letters and controls are those of every page.
    style = (REPORT_TEMPLATES / "page.css").read_text("utf-8") + (TEMPLATES / "serve.css").read_text("utf-8")
    script = (TEMPLATES / "serve.js").read_text("utf-8")
    return {
        "/": Answer(_document(models, examples).encode(), "text/html; charset=utf-8"),
        "/serve.css": Answer(style.encode(), "text/css; charset=utf-8"),
        "/serve.js": Answer(script.encode(), "text/javascript; charset=utf-8"),
    }


def _document(models: Sequence[ServedModel], examples: Sequence[Example]) -> str:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    data = {
        "models": [model.to_page() for model in models],
        "examples": [one.name for one in examples],
        "largest": LARGEST_UPLOAD,
    }
    return environment.get_template("serve.html").render(
        models=models,
        examples=examples,
        accepted=",".join(["image/*", *sorted(SUFFIXES)]),
        megabytes=LARGEST_UPLOAD // 2**20,
        megapixels=LARGEST_PIXELS // 1_000_000,
        files=BOX_FILES,
        data=safe_json(data),
        version=__version__,
    )
