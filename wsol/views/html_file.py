"""Pages as one HTML file each, in one style: the report, and the comparison of runs.

Templates, style and scripts lie in `templates/`. Names of classes, files and runs are escaped; a content
security policy lets a page run its own scripts, known by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from wsol.version import __version__

TEMPLATES = Path(__file__).with_name("templates")


def render_html(
    template: str, scripts: Sequence[str], values: Mapping[str, Any], beside: bool = False
) -> str:
    """A template with the common style and these scripts. beside: pictures that lie beside the file may be
    loaded; everything else is inside it."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    css, codes = _read("page.css"), [_read(name) for name in scripts]
    digests = " ".join(f"'{_digest(code)}'" for code in codes)
    pictures = "data: 'self' file:" if beside else "data:"
    policy = (
        f"default-src 'none'; img-src {pictures}; style-src '{_digest(css)}'; script-src {digests}; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template(template).render(
        {
            **values,
            "policy": policy,
            "css": Markup(css),
            "scripts": [Markup(code) for code in codes],
            "version": __version__,
            "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        }
    )


def safe_json(values: Any) -> Markup:
    """JSON that may stand inside a script element: no text in it can end the element or start another."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
