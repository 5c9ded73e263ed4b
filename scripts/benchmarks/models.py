"""What the composition costs: a localizer with ADL and GPCA against the same network written straight."""

from collections.abc import Callable
from functools import partial

import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from scripts.benchmarks.timing import Ratio, readable, time_side_by_side
from wsol.config import Attention, Backbone, Drop, Model
from wsol.models.localizer import build_localizer

BATCH, CLASSES, SIZE, WIDTH, ROUNDS = 4, 200, 224, 1024, 7
BOUNDS = {"vgg16": 1.05, "resnet50": 1.05, "mobilenet_v1": 1.10}


def straight_vgg16() -> nn.Sequential:
    return nn.Sequential(torchvision.models.vgg16().features[:-1], *head(512))


def straight_resnet50() -> nn.Sequential:
    net = torchvision.models.resnet50()
    net.layer4[0].conv2.stride = net.layer4[0].downsample[0].stride = (1, 1)
    return nn.Sequential(*list(net.children())[:-2], *head(2048))


def straight_mobilenet_v1() -> nn.Sequential:
    net = timm.create_model("mobilenetv1_100")
    net.blocks[4][0].conv_dw.stride = (1, 1)
    return nn.Sequential(net.conv_stem, net.bn1, net.blocks, *head(1024))


def head(inputs: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, WIDTH, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(WIDTH, WIDTH, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(WIDTH, CLASSES, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]


class Straight(nn.Module):
    """The network and its normalisation, and nothing between."""

    def __init__(self, network: nn.Module, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.network, self.mean, self.std = network, mean, std

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network((images / 255 - self.mean) / self.std)
        return logits


def training_step(network: nn.Module, logits: Callable[[Tensor], Tensor]) -> Callable[[], None]:
    """Forward, loss, backward and update on a batch of bytes, as a loader yields them."""
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9)
    images = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE), dtype=torch.uint8)
    labels = torch.arange(BATCH)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(logits(images), labels).backward()
        optimizer.step()

    return step


def logits_of(localizer: nn.Module, images: Tensor) -> Tensor:
    logits: Tensor = localizer(images).logits
    return logits


def run() -> list[Ratio]:
    ratios = []
    straight = {"vgg16": straight_vgg16, "resnet50": straight_resnet50, "mobilenet_v1": straight_mobilenet_v1}
    for name, bound in BOUNDS.items():
        model = Model(Backbone.of(name), weights="none", drop=Drop.of("adl"), attention=Attention.of("gpca"))
        localizer = build_localizer(model, CLASSES)
        plain = Straight(straight[name](), localizer.mean, localizer.std)
        seconds = time_side_by_side(
            {
                "straight": training_step(plain, plain),
                "localizer": training_step(localizer, partial(logits_of, localizer)),
            },
            rounds=ROUNDS,
        )
        ratios.append(
            Ratio(
                f"step of {name} with ADL and GPCA / written straight",
                seconds["localizer"] / seconds["straight"],
                bound,
                "at most",
                f"{readable(seconds['localizer'])} / {readable(seconds['straight'])} (N={BATCH}, {SIZE} px)",
            )
        )
    return ratios
