"""Write docs/gallery.md and its pictures: every method on the same eight painted birds.

    python scripts/gallery.py                  about 20 minutes on one core; the runs stay in runs/gallery
    python scripts/gallery.py --runs FOLDER    keep them elsewhere

Each row is a localizer that was trained for a minute on the same images, each column a test image. A run
that is complete is not trained again, so that the command can be stopped and started. After the code of a
method changed, remove the folder of its run, so that it is trained anew.

`METHODS` is the one table of rows. A test compares it with the registries: a new head, drop block, batch
transform or attention needs a row here, or its name in `LEFT_OUT`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the packages beside this folder, installed or not

import wsol  # noqa: E402
from scripts.written_part import write_part  # noqa: E402
from wsol.data.image import read_image  # noqa: E402
from wsol.drawing.grid import draw_grid  # noqa: E402
from wsol.drawing.overlay import Marked, draw_overlay  # noqa: E402
from wsol.records import Box  # noqa: E402
from wsol.run import Run  # noqa: E402
from wsol.runs.files import replacing  # noqa: E402
from wsol.scoring.protocols import find_protocols  # noqa: E402
from wsol.scoring.scores import Scores, ScoresAt  # noqa: E402
from wsol.views.side_by_side import TRUE, measure  # noqa: E402

PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "images"

SPECIES, TRAIN, TEST, PAINTED, SEED = 8, 90, 20, 128, 0  # painted birds: of each species, and their size
SIDE, EPOCHS = 96, 18  # of the images in the network, and of the training
PROTOCOL = "gpca"
SHOWN, QUALITY = 112, 74  # side of a picture in the sheet, and of the JPEG

BASE: Mapping[str, Any] = {
    "data": {"name": "cub", "image_size": SIDE, "resize": 108, "val_share": 0.1, "workers": 0},
    "model": {"backbone": {"name": "tiny", "centred": True}, "weights": "none"},
    "train": {
        "epochs": EPOCHS,
        "batch_size": 16,
        "lr": 0.003,
        "optimizer": "adamw",
        "clip_norm": 5.0,
        "channels_last": True,
        "schedule": {"name": "cosine", "warmup_epochs": 0.5},
        "validate_every": EPOCHS,
        "seed": SEED,
        "device": "cpu",
    },
    "eval": {"checkpoint": "last", "protocol": PROTOCOL},
}
# As the demo has it: the map of the object is learned once the network tells the species apart.
BAS = {"name": "bas", "channels": 0, "start": 7, "ramp": 3, "steady": True, "sharpness": 1.0}
LIGHT: Mapping[str, Any] = {"head": {"name": "foreground", "channels": 64}}


@dataclass(frozen=True)
class Method:
    """A row: its name, and what it changes in `BASE`. Nothing is trained where `weights_of` names a run.

    refines: the row whose maps it learns from. weights_of: the row whose backbone it takes.
    """

    name: str
    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    refines: str = ""
    weights_of: str = ""

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        return self.name.lower().replace(" ", "_").replace("(", "").replace(")", "").replace(",", "")

    def settings(self, birds: Path) -> dict[str, Any]:
        """Its config, as a file would hold it."""
        cam = {"head": {"name": "cam", "channels": 0}}
        own = {"data": {"root": str(birds)}, "model": {**cam, **self.model}, "train": self.train}
        return {name: {**BASE[name], **own.get(name, {})} for name in BASE}


def _attention(name: str, **options: str) -> Mapping[str, Any]:
    return {"attention": {"name": name, **options}}


METHODS: Mapping[str, Sequence[Method]] = {
    "methods": (
        Method("CAM"),
        Method("HaS", train={"transforms": [{"name": "has", "cells": [16]}]}),
        Method("CutMix", train={"transforms": ["cutmix"]}),
        Method("ADL", {"drop": {"name": "adl", "placement": "original"}}),
        Method("DGDM", {"drop": {"name": "dgdm", "placement": "original"}}),
        Method("ACoL", {"head": {"name": "acol", "channels": 0}}),
        Method("SPG", {"head": {"name": "spg", "channels": 64}}),
        Method("DANet", {"head": {"name": "danet", "channels": 64}}),
        Method("BAS", {"head": BAS}),
        Method("CAM refined", LIGHT, refines="CAM"),
        Method("BAS refined", LIGHT, refines="BAS"),
        Method("DDT on the features of CAM", {"head": "ddt"}, weights_of="CAM"),
    ),
    "attentions": (
        Method("CAM"),
        Method("CAM, constant", _attention("constant")),
        Method("CAM, SE", _attention("se")),
        Method("CAM, GPCA literal", _attention("gpca", reading="literal")),
        Method("CAM, GPCA unit", _attention("gpca", reading="unit")),
        Method("CAM, GPCA unit-sum", _attention("gpca", reading="unit-sum")),
        Method("CAM, GPCA unit-gain", _attention("gpca", reading="unit-gain")),
        Method("CAM, GPCA unit-center", _attention("gpca", reading="unit-center")),
        Method("CAM, GPCA auto", _attention("gpca", reading="auto")),
    ),
}  # fmt: skip

# Attentions without a row. They are made for the many channels of a network's features, and stand here before
# one channel for each species. `wsol model --attentions` lists what each costs.
LEFT_OUT = ("bam", "cbam", "cbam-s", "eca", "gcnet", "gct", "nlnet", "srp")


@dataclass(frozen=True)
class Row:
    """A method with its scores and its pictures.

    at: the figures at the threshold that was chosen on held-out images, or at the head's own cut. photos: the
    same images with their true boxes alone.
    """

    method: Method
    scores: Scores
    at: ScoresAt
    pictures: Sequence[Image.Image]
    photos: Sequence[Image.Image]

    @property
    def caption(self) -> str:
        return f"{self.method.name}: GT-known {self.at.figures['gt_known_loc']:.1f} %"


def make_run(method: Method, runs: Path, birds: Path) -> Run:
    """The trained and evaluated run of a method: made now, or found complete."""
    path = runs / method.folder
    settings = method.settings(birds)
    if method.weights_of:
        settings["model"]["weights"] = str(backbone_file(runs / method_of(method.weights_of).folder))
    if method.refines:
        source = runs / method_of(method.refines).folder
        del settings["data"]
        run = wsol.refine(source, path, config=settings, resume=True)
    else:
        run = wsol.train(settings, path, resume=True)
    if not run.is_evaluated:
        wsol.evaluate(run, PROTOCOL, device="cpu")
    return run


def method_of(name: str) -> Method:
    return next(m for group in METHODS.values() for m in group if m.name == name)


def backbone_file(run: Path) -> Path:
    """The weights of a run's backbone as a file, under the names of the bare network."""
    path = run / "backbone.safetensors"
    state = Run(run).localizer("cpu").state_dict()
    start = "backbone.stages."
    bare = {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
    with replacing(path) as draft:
        save_file(bare, draft)
    return path


def draw_row(method: Method, run: Run, rows: Sequence[int]) -> Row:
    """The figures of a run, and its pictures of the test images `rows`, by the maps of their true classes."""
    [measured] = measure([run], find_protocols(PROTOCOL)[0])
    scores, predictions = measured.scores, measured.predictions
    at = scores.at["held_out" if scores.cut is None else "fixed"]
    judged = measured.judge([at.threshold])[0]
    pictures, photos = [], []
    for row, path in zip(rows, measured.image_paths(rows), strict=True):
        image, truth = read_image(path), [Marked(Box(*box)) for box in predictions.truths(row).tolist()]
        found = [Marked(Box(*measured.boxes_in_pixels(judged, row)[0]))]
        photos.append(draw_overlay(image, truth=truth, largest=SHOWN))
        pictures.append(draw_overlay(image, measured.heat(row, TRUE), found, truth, largest=SHOWN))
    return Row(method, scores, at, pictures, photos)


def write_sheet(rows: Sequence[Row], path: Path) -> None:
    captions = ["the test images with their true boxes", *(row.caption for row in rows)]
    sheet = draw_grid([rows[0].photos, *(row.pictures for row in rows)], captions=captions)
    with replacing(path, parents=True) as draft:
        sheet.save(draft, "JPEG", quality=QUALITY, optimize=True)
    print(f"{path}: {sheet.width} x {sheet.height}, {path.stat().st_size // 1024} KB")


def table(rows: Sequence[Row]) -> str:
    """The figures of some rows, in Markdown."""
    lines = ["| method | GT-known [95 % interval] | top-1 classification | threshold |", "|---|---|---|---|"]
    for row in rows:
        low, high = row.at.intervals["gt_known_loc"]
        found = f"{row.at.figures['gt_known_loc']:.1f} [{low:.1f}, {high:.1f}]"
        classes = f"{row.scores['top1_cls']:.1f}" if "top1_cls" in row.scores else "no classes"
        cut = f"{row.at.threshold:g}" if row.scores.cut is None else "its own cut"
        lines.append(f"| {row.method.name} | {found} | {classes} | {cut} |")
    centre = rows[0].scores.centre_box["gt_known_loc_oracle"]
    return "\n".join([*lines, f"| *the centre box* | {centre:.1f} | | |"])


def write_page(sheets: Mapping[str, Sequence[Row]]) -> None:
    """Put the tables into docs/gallery.md, between its two marks; the words around them stay."""
    parts = []
    for name, rows in sheets.items():
        picture = f"![The same eight birds by all {name}](images/gallery-{name}.jpg)"
        parts.append(f"## {name.capitalize()}\n\n{picture}\n\n{table(rows)}\n")
    write_part(PAGE, "gallery.py", "\n".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=Path, default=ROOT / "runs" / "gallery", help="where the runs are kept"
    )
    args = parser.parse_args()
    birds = args.runs / "birds"
    if not birds.is_dir():
        wsol.paint_birds(birds, species=SPECIES, train=TRAIN, test=TEST, size=PAINTED, seed=SEED)
    sheets: dict[str, list[Row]] = {}
    for group, methods in METHODS.items():
        sheets[group] = []
        for method in methods:
            row = draw_row(method, make_run(method, args.runs, birds), [TEST * i for i in range(SPECIES)])
            print(row.caption, flush=True)
            sheets[group].append(row)
        write_sheet(sheets[group], PICTURES / f"gallery-{group}.jpg")
    write_page(sheets)


if __name__ == "__main__":
    main()
