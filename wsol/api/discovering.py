"""`wsol.discover`: the common object of a folder of photos, without labels and without training."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from wsol.class_names import OBJECT, display_name
from wsol.config import Config
from wsol.data.photos import list_photos
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError
from wsol.localization.discovery import Discovery
from wsol.localization.feature_file import FeatureFile
from wsol.models.localizer import Localizer, build_localizer
from wsol.runs.files import clear_leftovers, replacing_folder
from wsol.text_table import html_table
from wsol.views.box_formats import PhotoBoxes
from wsol.views.discovered_files import write_pictures, write_results


@dataclass(frozen=True)
class DiscoveredPhotos:
    """What `discover` found, by the name of the photo: its size, and the object with its box, or nothing.

    no_object: why, for each group without a common object; none of its photos has a box. unreadable: why, for
    each photo that could not be read. directions: of each group how many photos it has, and the shares that
    `wsol.models.principal_direction` explains. files: what was written.
    """

    boxes: Mapping[str, PhotoBoxes]
    no_object: Mapping[str, str]
    unreadable: Mapping[str, str]
    directions: Mapping[str, Mapping[str, Any]]
    files: tuple[Path, ...] = ()

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def empty(self) -> tuple[str, ...]:
        """The photos in which nothing was found."""
        return tuple(name for name, (_, found) in self.boxes.items() if not found)

    def _repr_html_(self) -> str:
        rows = [["photo", "group", "score", "box"]]
        for name, (_, found) in self.boxes.items():
            for one in found:
                box = ", ".join(f"{v:.0f}" for v in one.box)
                rows.append([name, display_name(one.name), f"{one.score:.2f}", box])
        return html_table(rows)


def discover(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    backbone: str | Mapping[str, Any] = "vgg16",
    weights: Path | str = "imagenet",
    size: int = 448,
    per_folder: bool = False,
    device: str = "auto",
) -> DiscoveredPhotos:
    """Find the common object of a folder of photos by DDT: no labels, no training, no threshold to choose.

    Each photo passes the network once. The direction comes from at most 256 photos, taken evenly, whose
    features wait on the disk; memory does not grow with the number of photos. With `out`, boxes, masks,
    overlays and a contact sheet are written; the folder appears when everything is done, so a kill leaves no
    half of it.

    Args:
        folder: photos, also in folders below it.
        out: folder for the results, which must not exist or be empty; None writes nothing.
        backbone: a name of `wsol list backbones`, or a mapping with its options.
        weights: imagenet, or a file. Without pretrained weights little is found.
        size: side of the square that each photo is resized to.
        per_folder: a direction for each folder of photos, not one for all of them.
        device: auto, cpu or cuda.

    Raises DataError where no group of photos has a common object: one photo, plain colours, noise.

    >>> import wsol
    >>> found = wsol.discover("holiday", "common", backbone="tiny", weights="none", size=96)
    >>> len(found), list(found.directions)
    (8, ['object'])
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: not a folder of photos")
    localizer = _build(backbone, weights, size, device)
    photos, unreadable = list_photos([root])
    groups = _group(photos, per_folder)
    settings = {
        "method": "ddt",
        "photos": str(root),
        "backbone": backbone if isinstance(backbone, str) else backbone.get("name"),
        "weights": str(weights),
        "size": size,
        "per_folder": per_folder,
    }
    with _results_folder(out) as draft, _bar(len(photos)) as bar:
        find = _Discovering(Discovery(localizer, size, unreadable, bar.update), draft)
        for label, (name, members) in enumerate(groups.items()):
            find.group(label, name, members)
        if len(find.no_object) == len(groups):
            name, reason = next(iter(find.no_object.items()))
            more = "" if len(groups) == 1 else f", and so with all {len(groups)} folders"
            raise DataError(f"{root if name == OBJECT else root / name}: no common object: {reason}{more}")
        boxes = {name: find.boxes[name] for name in photos if name in find.boxes}
        files: list[Path] = []
        if draft is not None:
            files = write_results(
                draft, root, photos, boxes, list(groups), find.directions, settings, unreadable
            )
    placed = tuple(Path(out) / path.name for path in files) if out is not None else ()
    return DiscoveredPhotos(boxes, find.no_object, unreadable, find.directions, placed)


class _Discovering:
    """The groups that are done, with what was found in them. draft: where pictures go, None for nowhere."""

    def __init__(self, discovery: Discovery, draft: Path | None) -> None:
        self._discovery, self._draft = discovery, draft
        self.boxes: dict[str, PhotoBoxes] = {}
        self.no_object: dict[str, str] = {}
        self.directions: dict[str, dict[str, Any]] = {}

    def group(self, label: int, name: str, photos: Mapping[str, Path]) -> None:
        with FeatureFile(self._draft) as kept:
            direction = self._discovery.fit(photos, kept)
            reason = "no photo can be read" if direction is None else direction.no_common_object
            figures = {} if direction is None else direction.figures()
            self.directions[name] = {"photos": len(photos), **figures, "no_common_object": reason}
            if reason is not None:
                self.no_object[name] = reason
                return
            for photo, found in self._discovery.find(photos, kept, label, name):
                self.boxes[photo] = (found.localization.size, found.localization.found)
                if self._draft is not None and found.is_there:
                    write_pictures(self._draft, photo, found)


def _group(photos: Mapping[str, Path], per_folder: bool) -> dict[str, dict[str, Path]]:
    """The photos by the folder that holds them, or all in one group."""
    groups: dict[str, dict[str, Path]] = {}
    for name, path in photos.items():
        groups.setdefault(str(Path(name).parent) if per_folder else OBJECT, {})[name] = path
    return groups


def _build(backbone: str | Mapping[str, Any], weights: Path | str, size: int, device: str) -> Localizer:
    """The localizer with the head `ddt`, which has no direction yet."""
    from wsol.runs.ranks import pick_device

    place = pick_device(device)
    settings = {
        "data": {"image_size": size, "resize": size},
        "model": {"backbone": backbone, "weights": str(weights), "head": "ddt"},
    }
    try:
        config = Config.read(settings)
        with torch.random.fork_rng(devices=[]):  # without weights, the same network each time
            torch.manual_seed(0)
            return build_localizer(config.model, classes=1, image_size=size).to(place).eval()
    except (CheckpointError, ConfigError) as error:  # they name the keys of a config, and here are arguments
        said = str(error).removeprefix("config: ").replace("model.", "").replace("data.image_size", "size")
        raise type(error)(said) from None


@contextmanager
def _results_folder(out: Path | str | None) -> Iterator[Path | None]:
    """A draft that becomes `out` when all is done; None where nothing is to be written."""
    if out is None:
        yield None
        return
    path = Path(out)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunFolderError(f"{path}: exists and is not an empty folder; choose another --out")
    if path.parent.is_dir():
        clear_leftovers(path.parent, ())  # of a process that was killed
    with replacing_folder(path, parents=True) as draft:
        yield draft


def _bar(total: int) -> Any:
    return tqdm(total=total, unit=" photos", desc="looking", file=sys.stderr, disable=None, leave=False)
