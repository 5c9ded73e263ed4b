"""What the composition costs: a localizer with ADL and GPCA against the same network written straight, and a
step with BAS against its two passes written straight."""

import copy
from collections.abc import Callable
from functools import partial

import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from scripts.benchmarks.timing import Ratio, readable, time_side_by_side
from wsol.config import Attention, Backbone, Drop, Head, Model
from wsol.models.localizer import Localizer, build_localizer

BATCH, CLASSES, SIZE, WIDTH, ROUNDS = 4, 200, 224, 1024, 7
BOUNDS = {"vgg16": 1.05, "resnet50": 1.05, "mobilenet_v1": 1.10}
BAS_BOUND = 1.15


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


class TwoPasses(nn.Module):
    """MobileNet V1 as BAS uses it: the network once, and once more what follows the generator's stage."""

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        net = timm.create_model("mobilenetv1_100")
        net.blocks[3][0].conv_dw.stride, net.blocks[4][0].conv_dw.stride = (1, 1), (2, 2)
        self.below = nn.Sequential(net.conv_stem, net.bn1, *net.blocks[:4])
        self.above = nn.Sequential(net.blocks[4], *head(1024))
        self.generator = nn.Conv2d(512, CLASSES, 3, padding=1)
        self.frozen = copy.deepcopy(self.above).requires_grad_(False)
        self.mean, self.std = mean, std

    def step(self, images: Tensor, labels: Tensor) -> None:
        """Both passes, forward and backward."""
        x = self.below((images / 255 - self.mean) / self.std)
        rows = torch.arange(len(labels))
        foreground = self.generator(x).sigmoid()[rows, labels][:, None]
        left = self.frozen(x.detach() * (1 - foreground))[rows, labels]
        (cross_entropy(self.above(x), labels) + left.mean() + foreground.mean()).backward()


def bas_step(localizer: Localizer, images: Tensor, labels: Tensor) -> None:
    terms = localizer.loss(localizer(images, labels), labels)
    torch.stack(list(terms.values())).sum().backward()


def bas() -> Ratio:
    """A training step with BAS, without the update, which both have alike."""
    model = Model(Backbone.of("mobilenet_v1", stride="bas"), weights="none", head=Head.of("bas"))
    localizer = build_localizer(model, CLASSES)
    straight = TwoPasses(localizer.mean, localizer.std)
    images = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE), dtype=torch.uint8)
    labels = torch.arange(BATCH)
    seconds = time_side_by_side(
        {
            "straight": partial(straight.step, images, labels),
            "localizer": partial(bas_step, localizer, images, labels),
        },
        rounds=ROUNDS,
    )
    return Ratio(
        "step of mobilenet_v1 with BAS / its two passes written straight",
        seconds["localizer"] / seconds["straight"],
        BAS_BOUND,
        "at most",
        f"{readable(seconds['localizer'])} / {readable(seconds['straight'])} (N={BATCH}, {SIZE} px)",
    )


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
    ratios.append(bas())
    return ratios
