"""Lay out the pages of the documentation site for Sphinx: `python scripts/docs_source.py FOLDER`.

Each page keeps its path, so that links between pages work as they do in the repository. README.md is the
first page. A link to a folder leads to its README.md, or else to a page that lists its files. A link to
another file of the repository offers that file. `scripts/build_docs.sh` builds the site from this folder;
there a dead link is an error.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = "README.md"

# The order of the site's contents. A page of docs/ that is in none of them is an error.
CONTENTS = {
    "Start": ["docs/own-data.md", "docs/pictures.md", "docs/serve.md", "docs/sharing.md", "data/README.md"],
    "Localize": [
        "docs/models.md",
        "docs/gallery.md",
        "docs/training.md",
        "docs/protocols.md",
        "docs/refine.md",
    ],
    "Without training": ["docs/any-classifier.md", "docs/discover.md"],
    "Attention": [
        "docs/gpca.md",
        "docs/gpca-on-real-birds.md",
        "docs/attention-in-any-network.md",
        "docs/classification.md",
        "docs/detection.md",
    ],
    "Reference": [
        "docs/api.md",
        "docs/architecture.md",
        "CONTRIBUTING.md",
        "examples/plugins/README.md",
        "CHANGELOG.md",
    ],
}

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(?=[)\s])")


def lay_out(out: Path) -> None:
    """Write every page, and the files that pages link to, into the new folder `out`."""
    # The first page comes last: its contents need all of `listed`.
    pages = [*(page for group in CONTENTS.values() for page in group), HOME]
    left_out = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - set(pages)
    if left_out:
        sys.exit(f"error: CONTENTS in {Path(__file__).name} lacks {', '.join(sorted(left_out))}")
    listed: set[str] = set()
    for page in pages:
        text = rewrite_links(page, (ROOT / page).read_text(), out, set(pages), listed)
        if page == HOME:
            text += contents(listed)
        write(out / ("index.md" if page == HOME else page), text)


def rewrite_links(page: str, text: str, out: Path, pages: set[str], listed: set[str]) -> str:
    """The page with links to folders and to README.md changed; `listed` gets the folders that need a page."""
    folder = (ROOT / page).parent

    def target(match: re.Match[str]) -> str:
        start, link, anchor = match[1], match[2], match[3] or ""
        path = (folder / link).resolve()
        if ":" in link or not path.is_relative_to(ROOT) or not path.exists():
            return match[0]  # another site, or dead: then Sphinx says so
        name = path.relative_to(ROOT).as_posix()
        if path.is_dir():
            if f"{name}/README.md" in pages:
                return f"{start}{link.rstrip('/')}/README.md{anchor}"
            list_files(path, out)
            listed.add(f"{name}/files.md")
            return f"{start}{link.rstrip('/')}/files.md{anchor}"
        if name == HOME:
            return f"{start}{link.removesuffix(HOME)}index.md{anchor}"
        if name not in pages:
            copy(path, out / name)
        return match[0]

    return LINK.sub(target, text)


def list_files(folder: Path, out: Path) -> None:
    """A page of the files of a folder, each to be downloaded."""
    name = folder.relative_to(ROOT)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        copy(path, out / name / path.name)
    write(out / name / "files.md", f"# {name}\n\n" + "".join(f"- [{f.name}]({f.name})\n" for f in files))


def contents(listed: set[str]) -> str:
    """The table of contents at the side of every page."""
    groups = [
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
        for caption, names in {**CONTENTS, "Files": sorted(listed)}.items()
        if names
    ]
    return "".join(groups)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/docs_source.py FOLDER")
    lay_out(Path(sys.argv[1]))
