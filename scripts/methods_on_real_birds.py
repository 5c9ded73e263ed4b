"""How many real birds a plain classifier finds by each method, without any training: runs, times and a table.

    python scripts/methods_on_real_birds.py measure RUNS --data CUB --classifier torchvision:resnet50 \\
        --weights FILE --variant keras --finer layer3
    python scripts/methods_on_real_birds.py time RUNS ...     the same options, on a machine at rest
    python scripts/methods_on_real_birds.py table RUNS

measure evaluates all methods but Score-CAM, which takes a pass for each of a thousand channels, and goes on
where it was stopped. time takes the seconds of one image, Score-CAM's too. Both use the last layer with maps,
and for LayerCAM and BagCAMs the layer --finer too. table reads every run in the folder, also those that other
commands made there (`head: ddt`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the packages beside this folder, installed or not

from wsol.cores import wait_passively  # noqa: E402

wait_passively()

import wsol  # noqa: E402
from wsol.localization.classifier_finder import ClassifierFinder  # noqa: E402
from wsol.run import Run  # noqa: E402
from wsol.runs.files import write_json  # noqa: E402
from wsol.runs.folder import RunFolder  # noqa: E402
from wsol.scoring.metrics import Kind  # noqa: E402
from wsol.scoring.scores import Scores  # noqa: E402

METHODS = ("cam", "gradcam", "gradcam++", "xgradcam", "hirescam", "layercam", "bagcams")
AT_FINER = ("layercam", "bagcams")
SLOW = "scorecam"
PROTOCOLS = ("gpca", "wsoleval-v2")
KNOWN, BEST, V2 = "gt_known_loc", "max_box_acc", "max_box_acc_v2"
TIMED_IMAGES = 16
TIMED_PASSES = 5  # the quickest one counts: other work on the machine can only slow a pass down
TIMES = "seconds.json"  # in RUNS: seconds for an image, by row


def main() -> None:
    args = parse()
    if args.stage == "table":
        print("\n".join(table(args.runs)))
        return
    usual = METHODS if args.stage == "measure" else (*METHODS, SLOW)
    rows = [(method, "auto") for method in args.methods or usual]
    rows += [(method, args.finer) for method in AT_FINER if args.finer]
    for method, layer in rows:
        name = f"{args.classifier.rpartition(':')[2]}-{method}" + (f"-{layer}" if layer != "auto" else "")
        print(f"== {args.stage} {name}", flush=True)
        find = wsol.from_classifier(
            args.classifier, method, layer, weights=args.weights, variant=args.variant, device="cpu"
        )
        if args.stage == "time":
            images, passes = (1, 1) if method == SLOW else (TIMED_IMAGES, TIMED_PASSES)
            keep_time(find, name, args.runs, args.data, images, passes)
        elif not RunFolder(args.runs / name).scores.is_file():
            wsol.evaluate(find, PROTOCOLS, data=args.data, out=args.runs / name)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("stage", choices=("measure", "time", "table"))
    add("runs", type=Path, metavar="RUNS", help="folder of the runs")
    add("--data", type=Path, metavar="CUB", help="CUB-200-2011, or a part of its classes")
    add("--classifier", metavar="NAME", help="torchvision:NAME or timm:NAME")
    add("--weights", default="imagenet", metavar="FILE")
    add("--variant", metavar="NAME")
    add("--methods", nargs="+", choices=(*METHODS, SLOW), help="at the last layer (default: see above)")
    add("--finer", metavar="LAYER", help="an earlier layer, for the methods that can use one")
    args = parser.parse_args()
    if args.stage != "table" and (args.data is None or args.classifier is None):
        parser.error(f"{args.stage} needs --data and --classifier")
    return args


def keep_time(find: ClassifierFinder, name: str, runs: Path, data: Path, images: int, passes: int) -> None:
    """Write the seconds that an image takes in a batch, from the file to the box."""
    photos = [sample.path for sample in wsol.open_dataset(data).split("test")][:images]
    find.batch(photos[:1], topk=1)  # the first pass prepares the kernels
    seconds = []
    for _ in range(passes):
        started = time.perf_counter()
        find.batch(photos, topk=1)
        seconds.append(time.perf_counter() - started)
    write_json(runs / TIMES, read_times(runs) | {name: min(seconds) / images})


def read_times(runs: Path) -> dict[str, float]:
    path = runs / TIMES
    return json.loads(path.read_text()) if path.is_file() else {}


def table(runs: Path) -> Iterator[str]:
    """GT-known localization in percent. A head that cuts its map itself (`ddt`) has no threshold."""
    columns = (
        "GT-known, `gpca`",
        "its best",
        "GT-known, `wsoleval-v2`",
        "MaxBoxAccV2",
        "seconds for an image",
    )
    yield f"| | {' | '.join(columns)} |"
    yield f"|{'---|' * (len(columns) + 1)}"
    times = read_times(runs)
    evaluated = [Run(path) for path in sorted(runs.iterdir()) if RunFolder(path).scores.is_file()]
    for run in evaluated:
        gpca, v2 = scores_of(run)
        chosen: Kind = "held_out" if gpca.cut is None else "fixed"
        best: Kind = "oracle" if gpca.cut is None else "fixed"
        figures = [gpca.at_kind(chosen)[KNOWN], gpca.at_kind(best)[KNOWN], v2.at_kind(chosen)[KNOWN], v2[V2]]
        yield line(run.path.name, figures, times.get(run.path.name))
    for name in sorted(times.keys() - {run.path.name for run in evaluated}):
        yield line(name, [None] * 4, times[name])
    if evaluated:  # the centre box is the same for all rows, and its size is the best one on the test images
        of_gpca, of_v2 = (scores.centre_box for scores in scores_of(evaluated[0]))
        yield line("centre box", [None, of_gpca[BEST], None, of_v2[V2]], None)


def scores_of(run: Run) -> list[Scores]:
    assert run.scores is not None, "only evaluated runs are asked"
    return [run.scores[name] for name in PROTOCOLS]


def line(name: str, figures: Sequence[float | None], seconds: float | None) -> str:
    cells = [f"{figure:.1f}" if figure is not None else "-" for figure in figures]
    return f"| {name} | {' | '.join(cells)} | {f'{seconds:.2f}' if seconds is not None else '-'} |"


if __name__ == "__main__":
    main()
