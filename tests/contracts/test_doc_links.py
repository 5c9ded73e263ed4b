"""Every relative link and #anchor in the pages of the repository leads to something that is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = ("*.md", "docs/*.md", "data/*.md", "examples/**/*.md", "examples/*.ipynb")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)")
HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings: lower case, no punctuation, hyphens; again: -1, -2.

    Links in a heading count by their text.
    """
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        again = 0
        while (name := f"{slug}-{again}" if again else slug) in found:
            again += 1
        found.add(name)
    return found


def dead_links(page: Path) -> list[str]:
    """What is wrong with the links of a page, one line each. Links to other sites are not followed."""
    problems = []
    for link in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text()))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists():
            problems.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(target.read_text()):
            problems.append(f"{link}: no such heading")
    return problems


def test_every_link_leads_somewhere(repository: Path) -> None:
    pages = sorted({page for pattern in PAGES for page in repository.glob(pattern)})
    assert len(pages) > 20
    dead = [f"{page.relative_to(repository)}: {text}" for page in pages for text in dead_links(page)]
    assert dead == [], "\n".join(dead)


def test_the_pages_of_the_site_link_to_each_other(repository: Path, tmp_path: Path) -> None:
    script = repository / "scripts" / "docs_source.py"
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.md"))
    assert tmp_path / "index.md" in pages
    dead = [f"{page.relative_to(tmp_path)}: {text}" for page in pages for text in dead_links(page)]
    assert dead == [], "\n".join(dead)


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("other.md", ""),
        ("other.md#the-wsolload-of-it", ""),
        ("other.md#twice-1", ""),
        ("#here", ""),
        ("https://example.org/nothing", ""),
        ("nothing.md", "no such file"),
        ("other.md#not-a-heading", "no such heading"),
        ("#there", "no such heading"),
    ],
)
def test_dead_links_are_found(tmp_path: Path, link: str, problem: str) -> None:
    other = "# The `wsol.load` of [it](x)\n## Twice\n## Twice\n```sh\n# not a heading\n```\n"
    (tmp_path / "other.md").write_text(other)
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n[a]({link}) `[b](code.md)`\n```\n[c](fence.md)\n```\n")
    assert dead_links(page) == ([f"{link}: {problem}"] if problem else [])
