"""The options for a plain classifier in place of a run: the same in `wsol localize` and `wsol evaluate`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsol.localization.classifier_finder import ClassifierFinder

ONLY_FOR_IT = ("method", "layer", "weights", "variant", "mean", "std", "classes", "table", "image_size")


def add_classifier_arguments(
    parser: argparse.ArgumentParser, not_needed: argparse.Action, moved: argparse.Action | None = None
) -> None:
    """`--classifier` and what belongs to it. not_needed: the argument that may be missing then.

    moved: the argument before it, which then holds the first of its values.
    """

    class InsteadOfRun(argparse.Action):
        def __call__(
            self,
            parser: argparse.ArgumentParser,
            namespace: argparse.Namespace,
            values: str | Sequence[Any] | None,
            option_string: str | None = None,
        ) -> None:
            not_needed.required = False
            if moved is not None:
                moved.metavar = not_needed.metavar
            setattr(namespace, self.dest, values)

    add = parser.add_argument_group("a plain classifier, without training").add_argument
    add(
        "--classifier",
        action=InsteadOfRun,
        metavar="NAME",
        help="torchvision:NAME, timm:NAME, module:function (called without arguments, returns the model), or "
        "a config file with a section `classifier`",
    )
    add("--method", metavar="NAME", help="how maps are made: `wsol list map_methods` (default: cam)")
    add("--layer", metavar="NAME", help="whose features are used (default: the last one with maps)")
    add("--weights", metavar="FILE", help="or imagenet, or none (default: imagenet)")
    add("--variant", metavar="NAME", help="keras: for a ResNet whose weights were converted from Keras")
    add(
        "--mean",
        type=float,
        nargs=3,
        metavar="V",
        help="of the input, RGB in [0, 1] (default: the network's)",
    )
    add("--std", type=float, nargs=3, metavar="V", help="deviation of the input (default: the network's)")
    add("--classes", type=Path, metavar="FILE", help="names of its classes, one on each line")
    add("--table", type=Path, metavar="CSV", help="the data set's classes and the classifier's for them")
    add("--image-size", type=int, metavar="PX", help="side of the images (default: the network's)")


def chosen_classifier(args: argparse.Namespace, threshold: float | None = None) -> ClassifierFinder | None:
    """The classifier that was asked for; None where the command is about a run."""
    from wsol.errors import ConfigError

    given = {key: getattr(args, key) for key in ONLY_FOR_IT if getattr(args, key) is not None}
    if args.classifier is None:
        if given:
            option = next(iter(given)).replace("_", "-")
            raise ConfigError(f"--{option} is for a plain classifier: name one with --classifier")
        return None
    from wsol.api.classifying import from_classifier

    return from_classifier(args.classifier, **given, threshold=threshold, device=args.device)
