"""Write docs/images/any-classifier.jpg: painted birds, with the map and the box of each method.

    python scripts/method_pictures.py                                           public weights, a download
    python scripts/method_pictures.py --weights mobilenet_v2.pth                the same weights from a file

Each row is a bird, each column a method, all on one classifier that never saw a painted bird. The map is that
of the classifier's own best class; the box is cut at 0.4 of its range.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from PIL import Image

import wsol
from wsol.drawing.grid import draw_grid
from wsol.drawing.overlay import Marked, draw_overlay

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "any-classifier.jpg"
METHODS = ("cam", "gradcam", "gradcam++", "xgradcam", "hirescam", "layercam", "bagcams")
BIRDS, SIDE, SHOWN, THRESHOLD = 4, 224, 170, 0.4


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classifier", default="torchvision:mobilenet_v2")
    parser.add_argument("--weights", default="imagenet", help="imagenet, or a file")
    parser.add_argument("--variant", help="keras, for a ResNet converted from there")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        birds = wsol.paint_birds(Path(folder) / "birds", species=BIRDS, train=1, test=1, size=SIDE, seed=3)
        photos = [s.path for s in wsol.open_dataset(birds).split("test")]
        rows: list[list[Image.Image]] = [[] for _ in photos]
        for method in METHODS:
            find = wsol.from_classifier(
                args.classifier,
                method,
                weights=args.weights,
                variant=args.variant,
                threshold=THRESHOLD,
                device="cpu",
            )
            for row, found in zip(rows, find.batch(photos, topk=1), strict=True):
                marked = [Marked(found.box, "")]
                picture = draw_overlay(
                    found.image, found.heat, predicted=marked, largest=SHOWN, heat_region=found.region
                )
                row.append(picture)
    sheet = draw_grid(rows, columns=METHODS)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(args.out, quality=85, optimize=True)
    print(f"{args.out}: {sheet.width} x {sheet.height}, {args.out.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
