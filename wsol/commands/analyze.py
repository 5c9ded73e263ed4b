"""`wsol analyze`: what the channel attention of a run has learned."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.config import Config
    from wsol.localization.predictions import Predictions
    from wsol.scoring.significance import Sample

HELP = "look at the channel attention: NLL of the masks, and their distribution"
DESCRIPTION = """\
Analyse the channel attention of evaluated runs, from their predictions of the test images.

  wsol analyze runs/demo
  wsol analyze runs/gpca-0 runs/gpca-1 runs/gpca-2 runs/se-0      mean and deviation over seeds
  wsol analyze runs/demo --classes 3 17 Blue_Jay

Prints the negative log-likelihood of the true class by three definitions (see docs/protocols.md)
beside the uniform ln C and the paper's table, and writes to RUN/analysis: nll.csv, and the masks'
distribution for some classes as mask_means, mask_histogram and mask_boxes, PNG and CSV.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dirs", type=Path, nargs="+", metavar="RUN", help="evaluated run folders")
    parser.add_argument(
        "--classes", nargs="+", metavar="CLASS", help="names or labels for the pictures (default: five)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the files (default: RUN/analysis); one run only"
    )


def run(args: argparse.Namespace) -> None:
    from wsol.config_file import load_config
    from wsol.errors import ConfigError, RunFolderError
    from wsol.localization.predictions import Predictions
    from wsol.scoring import mask_distribution as masks
    from wsol.scoring.nll import analyze_nll
    from wsol.scoring.seeds import group_over_seeds

    if args.out is not None and len(args.run_dirs) > 1:
        raise ConfigError("--out is for one run; several write to a folder each")
    analyzed: list[_Analyzed] = []
    for path in args.run_dirs:
        folders = [path / "predictions" / f"test-{view}" for view in ("resize", "crop")]
        there = [folder for folder in folders if folder.is_dir()]
        if not there:
            raise RunFolderError(f"{path}: no predictions of test images; run `wsol evaluate {path}`")
        predictions = Predictions(there[0])
        found = analyze_nll(predictions)
        analyzed.append(_Analyzed(path, load_config(path / "config.yaml"), len(predictions.classes), found))
        out = args.out or path / "analysis"
        out.mkdir(parents=True, exist_ok=True)
        _write_nll(out / "nll.csv", found, len(predictions.classes))
        if predictions.masks is None:
            print(f"{path}: no attention, so no masks to show; wrote {out / 'nll.csv'}")
            continue
        shown = masks.distribution(predictions, _find_classes(predictions, args.classes))
        masks.write_csv(shown, out)
        masks.draw(shown, out, title=path.name)
        print(f"{path}: masks of {', '.join(shown.classes)}; wrote {out}")
    print("\n" + _table(group_over_seeds(analyzed)), _published_table(), sep="\n\n")


@dataclass(frozen=True)
class _Analyzed:
    path: Path
    config: Config
    classes: int
    nll: dict[str, float | None]  # by definition; None where there is no attention


def _find_classes(predictions: Predictions, wanted: Sequence[str] | None) -> list[int]:
    from wsol.errors import ConfigError
    from wsol.registry import suggest
    from wsol.scoring.mask_distribution import default_classes

    if not wanted:
        return default_classes(predictions)
    names = {name: label for label, name in enumerate(predictions.classes)}
    short = {name.partition(".")[2]: label for name, label in names.items() if "." in name}
    numbers = {str(label): label for label in names.values()}
    known = numbers | short | names
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ConfigError(f"unknown class {unknown[0]!r}{suggest(unknown[0], names)}")
    labels = [known[name] for name in wanted]
    without = [name for name, label in zip(wanted, labels, strict=True) if label not in predictions.labels]
    if without:
        raise ConfigError(f"class {without[0]!r} has no test image")
    return labels


def _write_nll(path: Path, found: Mapping[str, float | None], classes: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["definition", "nll"])
        writer.writerows([name, "n/a" if value is None else f"{value:.6f}"] for name, value in found.items())
        writer.writerow(["uniform", f"{math.log(classes):.6f}"])


def _table(groups: Sequence[Sequence[_Analyzed]]) -> str:
    """One line for each config: mean and deviation over its seeds, the uniform value, the paper's figure."""
    from wsol.scoring.compare import method_name
    from wsol.scoring.nll import DEFINITIONS
    from wsol.scoring.published import published_nll
    from wsol.scoring.significance import Sample
    from wsol.scoring.tables import text_table

    published = published_nll()
    rows = [["method", "backbone", "runs", *DEFINITIONS, "uniform ln C", "paper (C = 200)"]]
    for runs in groups:
        method, backbone = method_name(runs[0].config), runs[0].config.model.backbone.name
        cells = []
        for name in DEFINITIONS:
            values = [v for v in (r.nll[name] for r in runs) if v is not None]
            cells.append(_spread(Sample.of(values)) if values else "n/a")
        paper = published.get((method.rpartition("-")[2].lower(), backbone))
        rows.append(
            [
                method,
                backbone,
                str(len(runs)),
                *cells,
                f"{math.log(runs[0].classes):.4f}",
                _spread(paper) if paper else "-",
            ]
        )
    return text_table(rows, left=2)


def _published_table() -> str:
    from wsol.scoring.published import published_nll
    from wsol.scoring.tables import text_table

    published = published_nll()
    backbones = list(dict.fromkeys(backbone for _, backbone in published))
    rows = [["paper, CUB-200-2011 (uniform: ln 200 = 5.2983)", *backbones]]
    for method in dict.fromkeys(method for method, _ in published):
        rows.append([method.upper(), *(_spread(published[method, b]) for b in backbones)])
    return text_table(rows)


def _spread(sample: Sample) -> str:
    return f"{sample.mean:.4f}" if math.isnan(sample.std) else f"{sample.mean:.4f} ± {sample.std:.4f}"
