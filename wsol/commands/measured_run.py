"""Which run `wsol evaluate` is about: one that is there, or a new one for a classifier or a pack."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wsol.commands.classifier_arguments import chosen_classifier

if TYPE_CHECKING:
    from wsol.localization.classifier_finder import ClassifierFinder
    from wsol.run import Run


def chosen_run(args: argparse.Namespace) -> tuple[ClassifierFinder | Run | None, Path]:
    """What is measured in a new run folder, and that folder; or None, and the run folder that is meant.

    It is a classifier, or a pack.
    """
    classifier = chosen_classifier(args)
    if classifier is None:
        from wsol.run import Run
        from wsol.runs.folder import default_run_dir

        pack = Run(args.run_dir)
        if not pack.folder.is_pack:
            return None, args.run_dir
        return pack, args.out or default_run_dir(pack.name, resume=False)
    if args.run_dir is not None:
        return classifier, args.run_dir
    from wsol.api.classifying import new_run_dir

    return classifier, new_run_dir(classifier)
