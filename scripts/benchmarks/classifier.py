"""Maps from a plain classifier: against pytorch-grad-cam, which needs to be installed, and the bare pass."""

import importlib.util
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from typing import Any

import torch
import torchvision
from torch import Tensor, nn

from scripts.benchmarks.timing import Ratio, readable, time_side_by_side
from wsol.models.classifier.localizer import ClassifierLocalizer
from wsol.models.weights import IMAGENET
from wsol.registry import MAP_METHODS

BATCH, SIZE, ROUNDS = 32, 224, 3
SCORE_SIDE, SCORE_IMAGES = 64, 1  # Score-CAM takes a pass for each of 2,048 channels
THEIRS = {"gradcam": "GradCAM", "layercam": "LayerCAM"}
FASTER, AS_CAM, AS_SCORECAM = 2.0, 1.03, 1.0


def ours(model: nn.Module, method: str, side: int) -> Callable[[Tensor], Tensor]:
    """From images to the maps of class 0 of each."""
    localizer = ClassifierLocalizer(model, MAP_METHODS.create(method), "layer4", IMAGENET, side)

    @torch.inference_mode()
    def look(images: Tensor) -> Tensor:
        return localizer.maps_for(localizer(images), torch.zeros(len(images), 1, dtype=torch.long))

    return look


def theirs(model: Any, name: str) -> Callable[[Tensor], Any]:
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    cam = getattr(pytorch_grad_cam, name)(model, [model.layer4])

    def look(images: Tensor) -> Any:
        with redirect_stderr(StringIO()):  # Score-CAM draws a progress bar
            return cam(images, [ClassifierOutputTarget(0)] * len(images))

    return look


def run() -> list[Ratio]:
    torch.manual_seed(0)
    model: nn.Module = torchvision.models.resnet50().eval()
    pictures = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE), dtype=torch.uint8)
    floats = pictures / 255
    localizer = ClassifierLocalizer(model, MAP_METHODS.create("cam"), "layer4", IMAGENET, SIZE)

    @torch.inference_mode()
    def bare() -> Tensor:
        scores: Tensor = model(localizer.normalise(pictures))
        return scores

    looks: dict[str, Callable[[], object]] = {
        "bare": bare,
        "cam": partial(ours(model, "cam", SIZE), pictures),
    }
    seconds = time_side_by_side(looks, rounds=ROUNDS)
    ratios = [
        Ratio(
            "CAM of ResNet50 / the bare forward pass",
            seconds["cam"] / seconds["bare"],
            AS_CAM,
            "at most",
            f"{readable(seconds['cam'])} / {readable(seconds['bare'])} (N={BATCH}, {SIZE} px)",
        )
    ]
    if importlib.util.find_spec("pytorch_grad_cam") is None:
        print("  (pytorch-grad-cam is not installed: nothing to compare the other methods with)")
        return ratios
    for method, name in THEIRS.items():
        looks = {
            "ours": partial(ours(model, method, SIZE), pictures),
            "theirs": partial(theirs(model, name), floats),
        }
        seconds = time_side_by_side(looks, rounds=ROUNDS)
        ratios.append(
            Ratio(
                f"{name} of pytorch-grad-cam / ours, ResNet50",
                seconds["theirs"] / seconds["ours"],
                FASTER,
                "at least",
                f"{readable(seconds['theirs'])} / {readable(seconds['ours'])} (N={BATCH}, {SIZE} px)",
            )
        )
    few = pictures[:SCORE_IMAGES, :, :SCORE_SIDE, :SCORE_SIDE].contiguous()
    looks = {
        "ours": partial(ours(model, "scorecam", SCORE_SIDE), few),
        "theirs": partial(theirs(model, "ScoreCAM"), few / 255),
    }
    seconds = time_side_by_side(looks, rounds=ROUNDS)
    ratios.append(
        Ratio(
            "ScoreCAM of pytorch-grad-cam / ours, ResNet50",
            seconds["theirs"] / seconds["ours"],
            AS_SCORECAM,
            "at least",
            f"{readable(seconds['theirs'])} / {readable(seconds['ours'])} "
            f"(N={SCORE_IMAGES}, {SCORE_SIDE} px)",
        )
    )
    return ratios
