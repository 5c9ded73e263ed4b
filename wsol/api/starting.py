"""`wsol.init_config`: from a folder of photos to a config that trains on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from wsol.api.first_config import LEAST_FOR_TEST, LEAST_FOR_VALIDATION, choose_test_share, config_text
from wsol.config import Config
from wsol.data.survey import Survey, survey
from wsol.errors import ConfigError, DataError
from wsol.plugins import load_installed
from wsol.runs.files import real_path, write_text
from wsol.text_table import text_table

LISTED = 20  # classes up to which each is printed


@dataclass(frozen=True)
class InitializedConfig:
    """The config that `init_config` wrote. findings: what it found in the folder, one line each."""

    path: Path
    config: Config
    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.findings)


def init_config(
    photos: Path | str,
    out: Path | str | None = None,
    *,
    annotations: Path | str | None = None,
    weights: Path | str | None = None,
    overwrite: bool = False,
) -> InitializedConfig:
    """Look at a folder of photos and write a commented config that trains a localizer on them.

    Args:
        photos: a folder with one folder for each class, or a data set in the layout of CUB-200-2011.
        out: the config file; None for `<name of the folder>.yaml` in the current folder.
        annotations: a CSV or COCO file of boxes; None to look for one in the folder itself.
        weights: a file of ImageNet weights of MobileNet V1; None for those that timm downloads.
        overwrite: replace a config that is there already.

    Raises:
        DataError: the photos cannot be trained on as they are, with what to mend.
        ConfigError: the config file is there already, or the file of weights is not there.

    >>> import wsol
    >>> made = wsol.init_config("birds", "my_birds.yaml")
    >>> made.config.data.name, made.config.train.batch_size
    ('cub', 4)
    """
    root = Path(photos)
    path = Path(out) if out is not None else Path(f"{real_path(root).name or 'photos'}.yaml")
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} is there already; --overwrite replaces it, --out FILE writes another one")
    if weights is not None and not Path(weights).is_file():
        raise ConfigError(f"{weights}: no such file of weights")
    load_installed()
    table = None if annotations is None else Path(annotations)
    found = survey(root, table)
    test_share = choose_test_share(found)
    if test_share:
        found = survey(root, table, test_share)
    problem = weights_problem() if weights is None else None
    own = None if weights is None else str(Path(weights).resolve())
    text = config_text(found, test_share, problem, own)
    try:
        config = Config.read(yaml.safe_load(text.encode()))
    except UnicodeEncodeError:
        raise DataError.at(root, None, "this name is not UTF-8 text, so that no config can name it") from None
    write_text(path, text, parents=True)
    return InitializedConfig(path, config, tuple(_findings(found, config, test_share, problem)))


def weights_problem() -> str | None:
    """Why the pretrained weights cannot be had here; None where they can."""
    from wsol.models.timm_network import why_out_of_reach  # imports torch, so it waits until it is needed

    return why_out_of_reach("mobilenetv1_100")


def _findings(found: Survey, config: Config, test_share: float | None, problem: str | None) -> Iterator[str]:
    index, train, test = found.index, found.per_class("train"), found.per_class("test")
    counted = f"{len(index.samples):,} photos of {len(index.classes):,} classes"
    yield f"{index.root}: {counted} (kind: {found.kind})"
    if len(index.classes) <= LISTED:
        boxed = [sum(bool(s.boxes) for s in index.samples if s.label == i) for i in range(len(index.classes))]
        rows = [[name, *map(str, n)] for name, *n in zip(index.classes, train, test, boxed, strict=True)]
        table = text_table([["class", "training", "test", "with a box"], *rows])
        yield from (f"  {line}" for line in table.splitlines())
    else:
        yield f"  training: {sum(train):,}, {min(train)} to {max(train)} of a class; test: {sum(test):,}"
    if found.bad:
        yield f"cannot be used: {len(found.bad):,}; 'wsol data check {index.root}' says why; the first is:"
        yield f"  {found.bad[0]}"
    yield from (f"note: {text}" for text in found.notes)
    if found.boxed:
        source = f" (from {found.annotations.name})" if found.annotations else ""
        yield f"boxes: {found.boxed:,} photos have one{source}; they are used to measure, not to train"
    else:
        yield "boxes: none; 'wsol train' and 'wsol localize' need none, 'wsol evaluate' does:"
        yield "  list the true boxes of some photos in a CSV file there, with the columns image,x0,y0,x1,y1"
    if found.boxed and test_share == 0:
        yield (
            f"too few photos to hold some out for a test: a class has {min(train)}, {LEAST_FOR_TEST} are "
            "needed; 'wsol evaluate' will have nothing to measure"
        )
    if not config.data.val_share:
        yield (
            f"too few photos to hold some out of the training: a class has {min(train)}, "
            f"{LEAST_FOR_VALIDATION} are needed; no accuracy on unseen photos will be shown meanwhile"
        )
    if problem:
        yield f"pretrained weights cannot be had here: {problem}"
        yield "  a small network learns from scratch: good boxes then take hundreds of photos of a class;"
        yield "  for better ones run this again with a network connection, or with --weights FILE:"
        yield "  ImageNet weights of MobileNet V1 that you have"
