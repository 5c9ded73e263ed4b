"""How many real birds a plain classifier finds by each method, without any training: measures, and prints a table.

    python scripts/methods_on_real_birds.py measure RUNS --data CUB --classifier torchvision:resnet50 \\
        --weights FILE --variant keras --finer layer3
    python scripts/methods_on_real_birds.py table RUNS

measure goes on where it was stopped. The last layer with maps is used, and by LayerCAM and BagCAMs the layer
--finer too. Score-CAM takes a pass for each of a thousand channels, so only a few images are timed with it.
table reads every run in the folder, also those that other commands made there (`head: ddt`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the packages beside this folder, installed or not

from wsol.cores import wait_passively  # noqa: E402

wait_passively()

import wsol  # noqa: E402
from wsol.localization.classifier_finder import ClassifierFinder  # noqa: E402
from wsol.run import Run  # noqa: E402
from wsol.runs.files import write_json  # noqa: E402

METHODS = ("cam", "gradcam", "gradcam++", "xgradcam", "hirescam", "layercam", "bagcams", "scorecam")
AT_FINER = ("layercam", "bagcams")
PROTOCOLS = ("gpca", "wsoleval-v2")
TIMED_IMAGES = {"scorecam": 1}  # of the others, 16
TIMES = "seconds.json"  # in RUNS: seconds for an image, by row


def main() -> None:
    args = parse()
    if args.stage == "table":
        print("\n".join(table(args.runs)))
        return
    name = args.classifier.rpartition(":")[2]
    rows = [(method, "auto") for method in METHODS]
    rows += [(method, args.finer) for method in AT_FINER if args.finer]
    for method, layer in rows:
        row = f"{name}-{method}" + (f"-{layer}" if layer != "auto" else "")
        print(f"== {row}", flush=True)
        find = wsol.from_classifier(
            args.classifier, method, layer, weights=args.weights, variant=args.variant, device="cpu"
        )
        measure(find, row, args.runs, args.data, whole=method != "scorecam")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("stage", choices=("measure", "table"))
    add("runs", type=Path, metavar="RUNS", help="folder of the runs")
    add("--data", type=Path, metavar="CUB", help="CUB-200-2011, or a part of its classes")
    add("--classifier", metavar="NAME", help="torchvision:NAME or timm:NAME")
    add("--weights", default="imagenet", metavar="FILE")
    add("--variant", metavar="NAME")
    add("--finer", metavar="LAYER", help="an earlier layer, for the methods that can use one")
    args = parser.parse_args()
    if args.stage == "measure" and (args.data is None or args.classifier is None):
        parser.error("measure needs --data and --classifier")
    return args


def measure(find: ClassifierFinder, row: str, runs: Path, data: Path, *, whole: bool) -> None:
    """The time of one image, and the scores of all test images; what is there already is kept."""
    times = read_times(runs)
    if row not in times:
        photos = [s.path for s in wsol.open_dataset(data).split("test")][: 16 if whole else 1]
        started = time.perf_counter()
        find.batch(photos, topk=1)
        runs.mkdir(parents=True, exist_ok=True)
        write_json(runs / TIMES, times | {row: (time.perf_counter() - started) / len(photos)})
    if whole and not (runs / row / "scores.json").is_file():
        wsol.evaluate(find, PROTOCOLS, data=data, out=runs / row)


def read_times(runs: Path) -> dict[str, float]:
    path = runs / TIMES
    return json.loads(path.read_text()) if path.is_file() else {}


def table(runs: Path) -> Iterator[str]:
    """GT-known localization in percent; the centre box is the same for every row."""
    yield "| | GT-known, `gpca`: held out | oracle | MaxBoxAccV2, `wsoleval-v2` | seconds for an image |"
    yield "|---|---|---|---|---|"
    times = read_times(runs)
    centre = {}
    folders = sorted(path.parent for path in runs.glob("*/scores.json"))
    for folder in folders:
        scores = Run(folder).scores
        assert scores is not None  # the file is there
        plain, v2 = scores["gpca"], scores["wsoleval-v2"]
        kinds = ("held_out", "oracle") if plain.cut is None else ("fixed",)
        known = [f"{plain.at_kind(kind)['gt_known_loc']:.1f}" for kind in kinds]
        cells = [*known, *["-"] * (2 - len(known)), f"{v2['max_box_acc_v2']:.1f}", seconds(times, folder.name)]
        centre = {"gpca": plain.centre_box, "v2": v2.centre_box}
        yield f"| {folder.name} | {' | '.join(cells)} |"
    for row in times.keys() - {folder.name for folder in folders}:
        yield f"| {row} | - | - | - | {seconds(times, row)} |"
    yield f"| the centre box | {centre} |"


def seconds(times: dict[str, float], row: str) -> str:
    return f"{times[row]:.2f}" if row in times else "-"


if __name__ == "__main__":
    main()
