"""`wsol evaluate`: predictions of the test images, and every figure of every protocol."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsol.config import Config
    from wsol.data.transforms import ViewKind
    from wsol.localization.predictions import Predictions
    from wsol.records import DataIndex, Sample
    from wsol.run import LoadedRun
    from wsol.runs.ranks import Ranks
    from wsol.scoring.protocols import Protocol

HELP = "measure a trained localizer: localization and classification, by named protocols"
DESCRIPTION = """\
Run a trained localizer over the test images and score it. The test images pass the network once
for each of the two test images that protocols ask for (resize, crop); the predictions stay in
RUN/predictions, so that pictures and reports need no model. Figures go to RUN/scores.json.

  wsol evaluate runs/demo                              the protocol of the run's config
  wsol evaluate runs/demo --protocol all               all protocols in one table
  wsol evaluate runs/demo --data elsewhere/birds       the data set lies elsewhere now
  wsol evaluate runs/demo --reuse --normalize pas      score again, without the model
  torchrun --nproc-per-node 2 -m wsol evaluate RUN     two processes, equal figures

Every figure is given at a fixed threshold, at the one chosen on held-out training images (whose
boxes it uses) and at the oracle, the best one on the test images themselves.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run folder of a trained localizer")
    parser.add_argument(
        "--data", type=Path, metavar="ROOT", help="where the data set lies (default: as trained)"
    )
    parser.add_argument(
        "--protocol", nargs="+", metavar="NAME", help="one or more, or 'all' (default: the run's own)"
    )
    parser.add_argument(
        "--normalize", metavar="NAME", help="minmax, max, pas or ivr (default: the protocol's)"
    )
    parser.add_argument(
        "--held-out",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="of the training images, to choose the threshold where the run held none out (default 0.1)",
    )
    parser.add_argument("--reuse", action="store_true", help="score the predictions that are there")
    parser.add_argument("--batch", type=int, metavar="N", help="images at a time (default: as trained)")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that score (default: what is worth it)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def run(args: argparse.Namespace) -> None:
    from wsol.errors import ConfigError
    from wsol.scoring.protocols import VIEWS, find_protocols

    if not 0 <= args.held_out < 1:
        raise ConfigError(f"--held-out {args.held_out} is outside 0 to 1")
    for name in ("batch", "workers"):
        if (getattr(args, name) or 1) < 1:
            raise ConfigError(f"--{name} {getattr(args, name)} is less than 1")
    asked = find_protocols(args.protocol or [], args.normalize)  # an unknown name ends here

    from wsol.runs.folder import RunFolder
    from wsol.runs.ranks import Ranks

    ranks = Ranks.join(args.device)
    folder = RunFolder(args.run_dir)
    try:
        run = _open_run(args)
        ranks.on_main(folder.claim_predictions)
        protocols = asked or find_protocols([run.config.eval.protocol], args.normalize)
        views = [view for view in VIEWS if any(p.view == view for p in protocols)]
        tests = {view: _predictions(args, run, "test", view, ranks) for view in views}
        held = {view: _predictions(args, run, "held_out", view, ranks) for view in views}
        _require_one_origin([*tests.values(), *held.values()])
        if ranks.is_main:
            record = _score(args, run, protocols, tests, held)
            _write(args, run, record)
            _print(run, record)
        ranks.gather(None)
    finally:
        folder.release()
        ranks.leave()


@dataclass(frozen=True)
class _Run:
    """A run folder and its data; `loaded` is None where the predictions that are there will do."""

    path: Path
    config: Config
    index: DataIndex
    loaded: LoadedRun | None


def _open_run(args: argparse.Namespace) -> _Run:
    from wsol.config_file import load_config
    from wsol.data.index import open_dataset
    from wsol.data.record import DataRecord
    from wsol.errors import DataError
    from wsol.run import load_run
    from wsol.runs.folder import RunFolder

    overrides = [f"data.root={args.data}"] if args.data else []
    folder = RunFolder(args.run_dir)
    if args.reuse and folder.config.is_file():
        loaded, config = None, load_config(folder.config, overrides)
        trained_on = DataRecord.read(folder)
    else:
        loaded = load_run(args.run_dir, args.device, overrides)
        config, trained_on = loaded.config, loaded.data
    index = open_dataset(config.data)
    if index.classes != trained_on.classes:
        raise DataError(
            f"{index.root}: not the classes that {args.run_dir} was trained on "
            f"({len(index.classes)}, it knows {len(trained_on.classes)})"
        )
    if not index.split("test"):
        raise DataError(f"{index.root}: no test images: nothing to evaluate")
    if not any(s.boxes for s in index.split("test")):
        raise DataError(f"{index.root}: no test image has a box: localization cannot be measured")
    if index.digest() != trained_on.digest:
        print(f"wsol: note: {index.root} is not the data that {args.run_dir} was trained on", file=sys.stderr)
    return _Run(args.run_dir, config, index, loaded)


def _held_out_samples(index: DataIndex, share: float, seed: int) -> tuple[Sample, ...]:
    """The images that the run held out, or a seeded share of its training images; only those with boxes."""
    from wsol.data.index import hold_out

    samples = index.split("val") or hold_out(index, share, seed).split("val")
    return tuple(s for s in samples if s.boxes)


def _predictions(
    args: argparse.Namespace, run: _Run, split: str, view: ViewKind, ranks: Ranks
) -> Predictions | None:
    """The predictions of one split and test image: made now, or those that are there; None without images."""
    from wsol.data.transforms import View
    from wsol.localization.predictions import Predictions
    from wsol.localization.predictor import predict

    folder = run.path / "predictions" / f"{split}-{view}"
    data = run.config.data
    if run.loaded is None:
        if split == "held_out" and not folder.is_dir():
            return None
        there = Predictions(folder)
        there.require(run.index)
        return there
    test = split == "test"
    samples = run.index.split("test") if test else _held_out_samples(run.index, args.held_out, data.val_seed)
    if not samples:
        return None
    return predict(
        run.loaded.localizer,
        run.index,
        samples,
        folder,
        View(view, data.image_size),
        ranks,
        split=split,
        batch=args.batch or run.config.train.batch_size,
        workers=data.workers,
        origin=f"{run.loaded.checkpoint.name}, epoch {run.loaded.epoch}",
    )


def _require_one_origin(used: Sequence[Predictions | None]) -> None:
    """Raise where predictions of several checkpoints would become figures of one."""
    from wsol.errors import DataError

    origins = {p.folder.name: p.header.origin for p in used if p is not None}
    if len(set(origins.values())) > 1:
        which = "; ".join(f"{name} is of {origin}" for name, origin in origins.items())
        raise DataError(f"predictions of different checkpoints ({which}); evaluate without --reuse")


def _score(
    args: argparse.Namespace,
    run: _Run,
    protocols: Sequence[Protocol],
    tests: Mapping[ViewKind, Predictions | None],
    held: Mapping[ViewKind, Predictions | None],
) -> dict[str, Any]:
    """Everything that scores.json holds."""
    from wsol.scoring.blocks import choose_workers
    from wsol.scoring.metrics import hold_out_thresholds, score

    results: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    faults: dict[str, dict[str, None]] = {}  # names by kind, each once, whichever view has it
    for view, test in tests.items():
        assert test is not None, "a test split without images was refused before"
        wanted = [p for p in protocols if p.view == view]
        workers = args.workers or choose_workers(len(test))
        part = held[view]
        chosen = hold_out_thresholds(part, wanted, workers) if part is not None else {}
        results |= score(test, wanted, chosen, workers)
        shared = {
            "run": run.path.name,
            "checkpoint": test.header.origin,
            "data": test.header.data,
            "data_digest": test.header.digest,
            "split": test.header.split,
            "num_images": len(test),
            "images_without_boxes": sum(not boxes for boxes in test.header.boxes),
        }
        for kind, names in test.faults().items():
            faults.setdefault(kind, {}).update(dict.fromkeys(names))
    unseen = bool(run.index.split("val"))
    shared["held_out_from"] = "images held out of training" if unseen else "images that the model has seen"
    shared |= {kind: list(names) for kind, names in faults.items()}
    return shared | {"protocols": {p.name: results[p.name] for p in protocols}}


def _write(args: argparse.Namespace, run: _Run, record: Mapping[str, Any]) -> None:
    from wsol.scoring.tables import write_json

    write_json(run.path / "scores.json", record)
    if args.json:
        write_json(args.json, record)
    _write_per_class(run.path / "per_class.csv", record["protocols"])


def _print(run: _Run, record: Mapping[str, Any]) -> None:
    from wsol.scoring.tables import error_table, summary_table, threshold_table

    results = record["protocols"]
    print(
        f"{run.path} ({record['checkpoint']}): {record['num_images']:,} test images; figures in percent "
        "[95 % bootstrap interval]\n"
    )
    for view, result in {r["view"]: r for r in results.values()}.items():
        top1, top5 = result["top1_cls"], result["top5_cls"]
        print(f"classification, test image by {view}: top-1 {top1:.2f}, top-5 {top5:.2f}")
    print("\n" + summary_table(results), threshold_table(results), error_table(results), sep="\n\n")
    held = next(iter(results.values()))["at"].get("held_out")
    print("\n* marks the kind of threshold that a protocol itself reports")
    if held:
        print(
            f"held out: thresholds from {held['num_boxes']:,} boxes of {held['num_images']:,} training "
            f"images ({record['held_out_from']})"
        )
    if record["images_without_boxes"]:
        print(f"test images without boxes: {record['images_without_boxes']:,}, each of them a miss")
    for kind in ("unreadable_images", "not_finite_maps", "constant_maps"):
        if record[kind]:
            shown = ", ".join(record[kind][:5]) + (", ..." if len(record[kind]) > 5 else "")
            print(f"{kind.replace('_', ' ')}: {len(record[kind])} ({shown})")
    print(f"\nwrote {run.path / 'scores.json'} and {run.path / 'per_class.csv'}")


def _write_per_class(path: Path, results: Mapping[str, Mapping[str, Any]]) -> None:
    rows = [{"protocol": name, **row} for name, result in results.items() for row in result["per_class"]]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
