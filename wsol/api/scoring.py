"""`wsol.score`: localization figures for maps that any program made, as arrays, files or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from wsol.data.faults import Faults
from wsol.data.index import read_dataset
from wsol.data.transforms import View
from wsol.errors import ConfigError, DataError
from wsol.scoring.blocks import choose_workers
from wsol.scoring.map_arrays import MapArrays
from wsol.scoring.map_folder import MapFolder
from wsol.scoring.protocols import VIEWS, Protocol, find_protocols
from wsol.scoring.score import score_maps
from wsol.scoring.scores import Evaluation, Scores

SIDE = 224  # of the square that the field's maps belong to


def score(
    maps: Sequence[ArrayLike | Path | str] | NDArray[Any] | Path | str,
    boxes: Sequence[ArrayLike] | NDArray[Any] | None = None,
    *,
    protocol: str = "gpca",
    sizes: Sequence[tuple[int, int]] | None = None,
    labels: ArrayLike | None = None,
    class_scores: ArrayLike | None = None,
    normalize: str | None = None,
    data: Path | str | None = None,
) -> Scores:
    """Score localization maps under one protocol.

    Args:
        maps: arrays (h, w) or paths of .npy files, one for each image; or a folder of
            `<image path>.npy`.
        boxes: for arrays and files, the truth box x0, y0, x1, y1 of each image, or several as (m, 4).
        protocol: its name; see `wsol list protocols`.
        sizes: (width, height) of each image, for the pixels of its boxes; by default those of its map.
        labels, class_scores: the true class of each image (N,) and the scores of all classes (N, C). With
            them there are top-1 and top-5 figures too.
        normalize: minmax, max, pas or ivr. By default maps are taken as they are and must lie in [0, 1].
        data: for a folder of maps, the data set's folder.

    Raises DataError where a map is missing, not finite or out of range; all of them are named at once.

    >>> import numpy as np
    >>> import wsol
    >>> heat = np.zeros((50, 60))
    >>> heat[10:30, 20:50] = 1
    >>> scores = wsol.score([heat, heat], [(20, 10, 50, 30), (0, 0, 9, 9)], protocol="wsoleval-v2")
    >>> scores["gt_known_loc"], scores.errors["wrong place"]
    (50.0, 1)
    """
    if isinstance(maps, (str, Path)):
        if data is None:
            raise ConfigError(f"{maps}: a folder of maps needs `data`, the folder of its data set")
        if boxes is not None or sizes is not None:
            raise ConfigError(f"{maps}: boxes and sizes come from the data set; leave them out")
        return score_folder(Path(maps), Path(data), [protocol], normalize)[protocol_name(protocol, normalize)]
    if boxes is None:
        raise ConfigError("boxes are missing: one or several truth boxes for each map")
    (wanted,) = _protocols([protocol], normalize)
    source = MapArrays(maps, boxes, View(wanted.view, SIDE), sizes, labels, class_scores)
    faults, _ = source.check(any_range=normalize is not None)
    if faults:
        raise DataError.listing(f"{len(faults)} maps cannot be scored", faults)
    return score_maps(source, [wanted], workers=1)[wanted.name]


def protocol_name(name: str, normalize: str | None) -> str:
    """The name that scores carry: `gpca`, or `gpca+pas` where the maps are normalised otherwise."""
    return _protocols([name], normalize)[0].name


def score_folder(
    maps: Path,
    data: Path,
    protocols: Sequence[str] = ("gpca",),
    normalize: str | None = None,
    *,
    split: str = "test",
    kind: str | None = None,
    annotations: Path | None = None,
    workers: int | None = None,
) -> Evaluation:
    """Score a folder of <image path>.npy against a data set, under one or more protocols.

    kind: the data set's layout; None to detect it. annotations: boxes for a folder of images.
    """
    wanted = _protocols(protocols, normalize)
    options = {} if annotations is None else {"annotations": annotations}
    index = read_dataset(data, Faults(), kind, **options)
    folder = MapFolder.open(maps, index, split, "resize")
    faults, constant = folder.check(index, any_range=normalize is not None)
    if faults:
        raise DataError.listing(f"{maps}: {len(faults)} faults, nothing was scored", faults)
    if not any(s.boxes for s in folder.samples):
        raise DataError(f"{index.root}: no {split} image has a box: nothing to score against")
    results: dict[str, Scores] = {}
    for view in VIEWS:
        own = [p for p in wanted if p.view == view]
        if own:
            source = MapFolder.open(maps, index, split, view)
            results |= score_maps(source, own, workers=workers or choose_workers(len(source)))
    return Evaluation(
        scores={p.name: results[p.name] for p in wanted},
        num_images=len(folder),
        origin=str(maps),
        data=str(index.root),
        data_digest=index.digest(),
        test_digest=index.test_digest(split),
        split=split,
        images_without_boxes=sum(not s.boxes for s in folder.samples),
        faults={"constant_maps": tuple(constant), "unreadable_images": tuple(folder.unreadable_images())},
    )


def _protocols(names: Sequence[str], normalize: str | None) -> list[Protocol]:
    """Maps are taken as they are unless a normalisation is asked for, by its own argument."""
    for name in names:
        if "+" in name:
            raise ConfigError(f"protocol {name}: say the normalisation by --normalize, for all protocols")
    found = find_protocols(names, normalize)
    return found if normalize is not None else [p.for_given_maps() for p in found]
