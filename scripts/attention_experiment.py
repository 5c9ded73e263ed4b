"""Whether an attention helps to find real birds: trains the runs, and prints three tables.

    python scripts/attention_experiment.py choose  RUNS --data CUB --weights FILE
    python scripts/attention_experiment.py confirm RUNS --data CUB --weights FILE --attentions none gpca-unit
    python scripts/attention_experiment.py tables  RUNS [--page docs/gpca-on-real-birds.md]

choose trains one seed with 30 % of the training images held out, and measures only those: the test images are
not looked at. confirm trains three seeds with 10 % held out, which choose the threshold, and measures the
test images. Both go on where they were stopped. All rows use the configs of configs/cub40, and differ in
nothing but the drop block or head, and the attention before the pooling. --set changes a value of all rows,
as in `wsol train`: smaller images and fewer epochs for a quick answer. Use another folder RUNS for it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the packages beside this folder, installed or not

from wsol.cores import wait_passively  # noqa: E402

wait_passively()

import wsol  # noqa: E402
from scripts.written_part import write_part  # noqa: E402
from wsol.errors import ConfigError  # noqa: E402
from wsol.run import Run, Split  # noqa: E402
from wsol.runs.files import write_json  # noqa: E402
from wsol.scoring.mask_effect import measure_masks  # noqa: E402
from wsol.scoring.scores import Evaluation  # noqa: E402
from wsol.scoring.significance import PairedDifference, Spread  # noqa: E402
from wsol.yamlfile import parse_override  # noqa: E402

HEADS = ("cam", "adl", "bas")
ATTENTIONS: dict[str, dict[str, Any]] = {
    "none": {"model.attention": "identity"},
    "constant": {"model.attention": "constant"},
    "se": {"model.attention": "se"},
    "srp": {"model.attention": "srp"},
    "gpca": {"model.attention": {"name": "gpca", "reading": "literal"}},
    "gpca-unit": {"model.attention": {"name": "gpca", "reading": "unit"}},
    "gpca-unit-sum": {"model.attention": {"name": "gpca", "reading": "unit-sum"}},
    "gpca-unit-gain": {"model.attention": {"name": "gpca", "reading": "unit-gain"}},
    "gpca-unit-center": {"model.attention": {"name": "gpca", "reading": "unit-center"}},
    "gpca-unit-fast": {  # theta and gain learn thirty times as fast
        "model.attention": {"name": "gpca", "reading": "unit-gain"},
        "train.rates.named": {"raw_theta": 30.0, "raw_gain": 30.0},
    },
    "gpca-auto": {"model.attention": {"name": "gpca", "reading": "auto"}},
}
PROTOCOL = "gpca"
CONTROL = "constant"
COMPARED = ("top1_loc", "gt_known_loc")
FIGURES = {"top1_cls": "top-1 cls", "top1_loc": "top-1 loc", "gt_known_loc": "GT-known"}


def main() -> None:
    args = parse()
    if args.stage == "tables":
        tables = "\n".join(
            [*choice_table(args.runs), "", *confirmation_table(args.runs), "", *pooled_table(args.runs)]
        )
        print(tables)
        if args.page is not None:
            write_part(args.page, Path(__file__).name, tables)
        return
    changes = {"data.root": args.data, "model.weights": args.weights, "model.backbone.variant": "tf"}
    changes |= dict(args.set)
    for seed in args.seeds or ([0] if args.stage == "choose" else [0, 1, 2]):
        for head in args.heads:
            for attention in args.attentions:
                print(f"== {args.stage} {head} {attention}, seed {seed}", flush=True)
                run_once(args.runs, args.stage, head, attention, seed, changes)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("stage", choices=("choose", "confirm", "tables"))
    add("runs", type=Path, metavar="RUNS", help="folder of the runs")
    add("--data", type=Path, metavar="CUB", help="CUB-200-2011, or its every fifth class")
    add("--weights", type=Path, metavar="FILE", help="MobileNet V1 with TensorFlow's ImageNet weights")
    add("--heads", nargs="+", choices=HEADS, default=HEADS)
    add("--attentions", nargs="+", choices=ATTENTIONS, default=list(ATTENTIONS))
    add("--seeds", nargs="+", type=int, help="default: 0 to choose, 0 1 2 to confirm")
    add("--set", action="append", default=[], type=setting, metavar="KEY=VALUE", help="a value of all rows")
    add("--page", type=Path, metavar="FILE", help="a page of the docs; the tables go between its marks")
    args = parser.parse_args()
    if args.stage != "tables" and (args.data is None or args.weights is None):
        parser.error(f"{args.stage} needs --data and --weights")
    return args


def setting(text: str) -> tuple[str, Any]:
    try:
        path, value = parse_override(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return ".".join(path), value


def folder_of(runs: Path, stage: str, head: str, attention: str, seed: int) -> Path:
    return runs / stage / f"{head}_{attention}_{seed}"


def run_once(
    runs: Path, stage: str, head: str, attention: str, seed: int, changes: Mapping[str, Any]
) -> None:
    """Train and measure one run, or what of it is not done yet."""
    folder = folder_of(runs, stage, head, attention, seed)
    share = {"data.val_share": 0.3} if stage == "choose" else {}
    chosen = {**changes, **ATTENTIONS[attention], **share, "train.seed": seed}
    result = folder / f"{stage}.json"
    if result.is_file():
        return
    run = wsol.train(ROOT / f"configs/cub40/mobilenet_v1_{head}.yaml", folder, set=chosen, resume=True)
    split: Split = "val" if stage == "choose" else "test"
    evaluation = wsol.evaluate(run, PROTOCOL, split=split)
    wsol.analyze(run, split=split)
    write_json(result, evaluation.to_json())


def measured(runs: Path, stage: str, head: str, attention: str) -> list[tuple[int, Run, Evaluation]]:
    """The finished runs of a row: seed, run, evaluation."""
    found = []
    for folder in sorted((runs / stage).glob(f"{head}_{attention}_[0-9]*")):
        result = folder / f"{stage}.json"
        if result.is_file():
            found.append((int(folder.name.rpartition("_")[2]), Run(folder), Evaluation.read(result)))
    return sorted(found, key=lambda one: one[0])


def rows(runs: Path, stage: str) -> Iterator[tuple[str, str, list[tuple[int, Run, Evaluation]]]]:
    for head in HEADS:
        for attention in ATTENTIONS:
            found = measured(runs, stage, head, attention)
            if found:
                yield head, attention, found


def choice_table(runs: Path) -> Iterator[str]:
    """Held-out images only. The threshold is the best one on the same images, for every row alike."""
    yield from head_of_table(
        ["", "attention", *FIGURES.values(), "mask: mean", "std", "AUC of the true class"]
    )
    for head, attention, found in rows(runs, "choose"):
        _, run, evaluation = found[0]
        figures = evaluation[PROTOCOL].at_kind("oracle")
        yield line([head.upper(), attention, *(f"{figures[key]:.1f}" for key in FIGURES), *mask_cells([run])])


def confirmation_table(runs: Path) -> Iterator[str]:
    """Test images, at the threshold that held-out images chose; differences from the control by seed."""
    against = [f"{FIGURES[key]} - {CONTROL}" for key in COMPARED]
    yield from head_of_table(["", "attention", "seeds", *FIGURES.values(), *against, "AUC (held out)"])
    for head, attention, found in rows(runs, "confirm"):
        table = figures_by_seed(found)
        control = figures_by_seed(measured(runs, "confirm", head, CONTROL))
        both = [seed for seed in table if seed in control]
        cells = [show(Spread.of([own[key] for own in table.values()])) for key in FIGURES]
        for key in COMPARED:
            pairs = [[side[seed][key] for seed in both] for side in (table, control)]
            cells.append(difference(pairs) if attention != CONTROL and len(both) > 1 else "-")
        auc = mask_cells([run for _, run, _ in found])[-1]
        yield line([head.upper(), attention, str(len(found)), *cells, auc])


def pooled_table(runs: Path) -> Iterator[str]:
    """The differences from the control over all heads at once, paired by head and seed."""
    yield from head_of_table(
        ["attention", "heads", "pairs", *(f"{FIGURES[k]} - {CONTROL}" for k in COMPARED)]
    )
    for attention in ATTENTIONS:
        tables = {head: figures_by_seed(measured(runs, "confirm", head, attention)) for head in HEADS}
        controls = {head: figures_by_seed(measured(runs, "confirm", head, CONTROL)) for head in HEADS}
        both = [(head, seed) for head in HEADS for seed in tables[head] if seed in controls[head]]
        heads = list(dict.fromkeys(head.upper() for head, _ in both))
        if attention == CONTROL or len(heads) < 2:
            continue
        cells = [
            difference([[side[head][seed][key] for head, seed in both] for side in (tables, controls)])
            for key in COMPARED
        ]
        yield line([attention, ", ".join(heads), str(len(both)), *cells])


def figures_by_seed(found: Sequence[tuple[int, Run, Evaluation]]) -> dict[int, Mapping[str, float]]:
    return {seed: evaluation[PROTOCOL].at_kind("held_out") for seed, _, evaluation in found}


def mask_cells(runs: Sequence[Run]) -> list[str]:
    """Mean, deviation over the channels and AUC of the masks of held-out images; '-' without a mask."""
    effects = [effect for run in runs if (effect := measure_masks(run.predictions("held_out"))) is not None]
    if not effects:
        return ["-"] * 3
    digits = {"mean": 3, "std_channels": 4, "auc": 3}
    return [show(Spread.of([getattr(e, name) for e in effects]), places) for name, places in digits.items()]


def show(spread: Spread, places: int = 1) -> str:
    text = f"{spread.mean:.{places}f}"
    return text if spread.n < 2 else f"{text} ± {spread.std:.{places}f}"


def difference(pairs: Sequence[Sequence[float]]) -> str:
    found = PairedDifference.of(*pairs)
    return f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}], p {found.p:.2f}"


def head_of_table(names: Sequence[str]) -> Iterator[str]:
    yield line(names)
    yield line(["---"] * len(names))


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
