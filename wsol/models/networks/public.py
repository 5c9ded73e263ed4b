"""The classifiers of torchvision and timm, as they are."""

from __future__ import annotations

from wsol.models.classifier.opening import Blueprint, timm_classifier, torchvision_classifier
from wsol.registry import NETWORKS


@NETWORKS.register("torchvision:", "any classifier of torchvision: torchvision:resnet50")
def torchvision_network(name: str, classes: int) -> Blueprint:
    return torchvision_classifier(name, tuple(map(str, range(classes))))


@NETWORKS.register("timm:", "any classifier of timm: timm:resnet50")
def timm_network(name: str, classes: int) -> Blueprint:
    return timm_classifier(name, tuple(map(str, range(classes))))
