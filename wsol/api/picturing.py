"""`wsol.visualize` and `wsol.report`: pictures and a page of evaluated runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from wsol.api.comparing import Runs, as_runs
from wsol.drawing.grid import draw_grid, in_rows
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.runs.files import replacing, write_text
from wsol.views.charts import write_charts
from wsol.views.figure_style import check_formats
from wsol.views.output_folder import claim_folder, file_name
from wsol.views.page import render
from wsol.views.picked import draw_picked
from wsol.views.report import Assets, build_page
from wsol.views.side_by_side import run_names


@dataclass(frozen=True)
class Pictures:
    """What `visualize` wrote: the grid of all pictures, and each as a file of its own.

    thresholds: where the maps of each run were cut.
    """

    grid: Path
    files: tuple[Path, ...]
    protocol: str
    thresholds: tuple[float, ...]

    def _repr_png_(self) -> bytes:
        return self.grid.read_bytes()


@dataclass(frozen=True)
class Report:
    """What `report` wrote: one HTML file, and the figures and large pictures that were asked for."""

    path: Path
    figures: tuple[Path, ...] = ()
    assets: Path | None = None

    def _repr_html_(self) -> str:
        from html import escape

        return f'<a href="{escape(str(self.path))}">{escape(str(self.path))}</a>'


def visualize(
    runs: Runs,
    *,
    pick: str = "worst",
    num: int = 24,
    protocol: str | None = None,
    threshold: float | None = None,
    out: Path | str | None = None,
    data: Path | str | None = None,
    overwrite: bool = False,
) -> Pictures:
    """Draw test images with heat, found box (blue), true box (red), class, IoU and outcome.

    Args:
        runs: one evaluated run, or several side by side; the first one picks the images.
        pick: worst, best, random, wrong-class, or the name of a class.
        num: how many images.
        protocol: by default the run's own.
        threshold: by default the one chosen on held-out images where there is one, else the protocol's.
        out: by default `overlays` in the first run folder.
        data: where the data set is now, if it was moved.
        overwrite: write into a folder that is not empty.

    >>> import wsol
    >>> pictures = wsol.visualize("runs/demo", num=3, out="pictures")
    >>> len(pictures.files), pictures.grid.name
    (3, 'grid.png')
    """
    if num < 1:
        raise ConfigError(f"num {num}: at least 1 picture is needed")
    if threshold is not None and not 0 <= threshold < 1:
        raise ConfigError(f"threshold {threshold} is outside 0 to 1")
    opened = as_runs(runs, data)
    by = opened[0].protocol(protocol)
    names = run_names(opened)
    folder = Path(out) if out is not None else opened[0].folder.overlays
    several = len(opened) > 1
    tiles, captions, files = [], [], []
    thresholds: tuple[float, ...] = ()
    for number, one in enumerate(draw_picked(opened, by, pick, num, threshold), start=1):
        if number == 1:
            claim_folder(folder, overwrite)
        thresholds = tuple(one.thresholds)
        picture = draw_grid([one.pictures], names) if several else one.pictures[0]
        files.append(folder / file_name(f"{number:03d}_{Path(one.name).stem}", ".png", 80))
        _save(picture, files[-1])
        tiles.append(one.tiles)
        captions.append(f"{one.truth}   {one.name}")
    if not files:
        raise DataError(f"{opened[0].path}: no image fits the pick {pick!r}")
    sheet = draw_grid(tiles, names, captions) if several else draw_grid(in_rows([t[0] for t in tiles]))
    _save(sheet, folder / "grid.png")
    return Pictures(folder / "grid.png", tuple(files), by.name, thresholds)


def report(
    runs: Runs,
    *,
    out: Path | str | None = None,
    protocol: str | None = None,
    images: int | None = None,
    assets: Path | str | None = None,
    figures: Path | str | None = None,
    formats: Sequence[str] = ("pdf",),
    data: Path | str | None = None,
    overwrite: bool = False,
) -> Report:
    """Write one HTML file about evaluated runs: figures, curves, gallery, classes, confusions, attention.

    Args:
        runs: one run or several, measured by the same protocol on the same images.
        out: by default report.html in the first run folder.
        protocol: by default the first run's own.
        images: the largest number in the gallery; by default as many as keep the file small.
        assets: a folder for large pictures beside the file, which it loads when they are opened; by default
            everything is inside the file, in pictures as large as its limit allows.
        figures: a folder for the charts of the page, as figures for a paper.
        formats: of these figures: png, pdf, svg.
        data: where the data set is now, if it was moved.
        overwrite: replace the file `out`, and write into folders that are not empty.

    >>> import wsol
    >>> wsol.report(["runs/demo", "runs/other"], out="both.html").path.stat().st_size > 10_000
    True
    """
    if images is not None and images < 0:
        raise ConfigError(f"images {images}: not less than 0")
    suffixes = check_formats(formats)
    opened = as_runs(runs, data)
    path = Path(out) if out is not None else opened[0].folder.report
    # The report in a run folder belongs to it and is made anew; a user's own file is not replaced unasked.
    if out is not None and path.exists() and not overwrite:
        raise RunFolderError(f"{path}: already exists; choose another --out or allow it with --overwrite")
    beside = None
    if assets is not None:
        folder = claim_folder(Path(assets), overwrite, "--assets")
        beside = Assets.beside(path, folder)
    drawn = None if figures is None else claim_folder(Path(figures), overwrite, "--figures")
    page = build_page(opened, opened[0].protocol(protocol), images, beside)
    write_text(path, render(page), parents=True)
    files = write_charts(page.all_charts(), drawn, suffixes) if drawn else []
    return Report(path, tuple(files), beside.folder if beside else None)


def _save(picture: Image.Image, path: Path) -> None:
    with replacing(path) as draft:
        picture.save(draft, "PNG")
