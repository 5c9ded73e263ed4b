"""Train a detector with attention, and let pycocotools judge what it finds.

    python examples/detection/run.py fcos --attention gpca
    python examples/detection/run.py ssd300 --attention se --train IMAGES BOXES.json --test IMAGES BOXES.json

Without --train and --test it paints birds, whose boxes are exact. The files with boxes are in COCO's format;
docs/detection.md says how to run the data sets of the GPCA paper.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from birds import paint_boxes
from boxes import Boxes, Target
from detectors import DETECTORS, build_detector
from judging import Figures, detect, judge
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler

from gpca import Insertion, available_attentions
from wsol.errors import WsolError

MOMENTUM, DECAY = 0.9, 5e-4  # the paper's, for both detectors
CLIP = 35.0  # most that the gradient's norm may be, as MMDetection has it for FCOS


def train(
    model: nn.Module,
    inserted: Insertion,
    data: Boxes,
    *,
    steps: int,
    batch: int,
    rate: float,
    drops: Sequence[float],
    workers: int = 0,
    device: str = "cpu",
) -> list[float]:
    """SGD; the loss of each step. drops: when the rate falls to a tenth, as shares of the steps."""
    optimizer = torch.optim.SGD(parameter_groups(model, inserted), lr=rate, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [round(steps * share) for share in drops])
    order = RandomSampler(data, num_samples=steps * batch)
    loader: DataLoader[Any] = DataLoader(data, batch, sampler=order, collate_fn=as_lists, num_workers=workers)
    model.to(device).train()
    losses: list[float] = []
    for images, targets in loader:
        there = [{key: value.to(device) for key, value in target.items()} for target in targets]
        loss = torch.stack(list(model([image.to(device) for image in images], there).values())).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if len(losses) % max(1, steps // 10) == 0:
            print(f"step {len(losses)} of {steps}: loss {losses[-1]:.3f}", flush=True)
    return losses


def parameter_groups(model: nn.Module, inserted: Insertion) -> list[dict[str, Any]]:
    """All that is learned, with weight decay but for what an attention wants to be spared: GPCA's theta."""
    spared = {
        parameter
        for attention in inserted.attentions.values()
        for name, parameter in attention.named_parameters()
        if name in attention.no_weight_decay
    }
    groups = {
        DECAY: [p for p in model.parameters() if p.requires_grad and p not in spared],
        0.0: list(spared),
    }
    return [{"params": params, "weight_decay": decay} for decay, params in groups.items() if params]


def as_lists(items: Sequence[tuple[Tensor, Target]]) -> tuple[list[Tensor], list[Target]]:
    """A batch: images may differ in size."""
    images, targets = zip(*items, strict=True)
    return list(images), list(targets)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = DETECTORS[args.detector]
    with tempfile.TemporaryDirectory() as folder:
        if args.train is None:
            parts = paint_boxes(
                Path(folder), species=3, train=args.birds, test=max(1, args.birds // 5), size=160
            )
        else:
            parts = {"train": args.train, "test": args.test}
        data, test = Boxes(*parts["train"], augment=chosen.augment), Boxes(*parts["test"])
        if data.categories != test.categories:
            raise ValueError("the files of --train and --test have different categories")
        model, inserted = build_detector(
            args.detector, len(data.names), args.attention, sides=args.sides, pretrained=args.pretrained
        )
        print(f"{len(data)} images to train, {len(test)} to test, {len(data.names)} classes; {inserted}")
        rate = args.rate or chosen.rate
        sizes = {"steps": args.steps, "batch": args.batch, "workers": args.workers}
        train(model, inserted, data, rate=rate, drops=chosen.drops, device=device, **sizes)
        results = detect(model, test, device)
        figures, classes = judge(test, results)
    for name, mask in inserted.masks.items():
        print(f"{name}: mask {mask.min():.3f} to {mask.max():.3f} in the last image")
    print(text_of(figures))
    print(f"AP50 of each class: {text_of(classes)}")
    if args.results:
        args.results.write_text(json.dumps(results))


def text_of(figures: Figures) -> str:
    return ", ".join(
        f"{name} {'n/a' if math.isnan(value) else f'{value:.1f}'}" for name, value in figures.items()
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("detector", choices=list(DETECTORS))
    add("--attention", default="gpca", choices=list(available_attentions()), help="identity: none")
    add("--train", nargs=2, type=Path, metavar=("IMAGES", "BOXES"), help="folder of images, file with boxes")
    add("--test", nargs=2, type=Path, metavar=("IMAGES", "BOXES"))
    add(
        "--birds",
        type=int,
        default=40,
        metavar="N",
        help="to train, painted of each of 3 species (default: 40)",
    )
    add("--steps", type=int, default=100, metavar="N", help="of training (default: 100)")
    add("--batch", type=int, default=4, metavar="N", help="images in a step (default: 4)")
    add("--rate", type=float, metavar="RATE", help="of learning (default: ssd300 0.001, fcos 0.01)")
    add(
        "--sides",
        type=int,
        nargs=2,
        default=[160, 160],
        metavar=("SHORT", "LONG"),
        help="to which fcos resizes images: the shorter side, and the most of the longer (default: 160 160)",
    )
    add(
        "--pretrained",
        action="store_true",
        help="ImageNet weights in the backbone; torchvision downloads them",
    )
    add("--workers", type=int, default=0, metavar="N", help="processes that read images (default: 0)")
    add("--seed", type=int, default=0, metavar="N")
    add("--results", type=Path, metavar="FILE", help="write the boxes found as a results file of COCO")
    args = parser.parse_args(arguments)
    if (args.train is None) != (args.test is None):
        parser.error("give both --train and --test, or neither to paint birds")
    return args


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, WsolError) as error:
        sys.exit(f"error: {error}")
