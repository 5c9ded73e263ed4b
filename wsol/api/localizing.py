"""`wsol.load`, `wsol.localize` and `wsol.export`: use a trained localizer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from wsol.api.classifying import as_finder
from wsol.class_names import display_name
from wsol.data.photos import batch_photos, list_photos, photo_stamp, read_photos
from wsol.data.transforms import View
from wsol.errors import ConfigError, RunFolderError
from wsol.localization.finder import Finder
from wsol.localization.localized import Finding, Localization
from wsol.models.export import SUFFIXES, ModelCard
from wsol.models.export import export as write_model
from wsol.models.localizer import Localizer
from wsol.run import Run
from wsol.runs.files import replacing
from wsol.text_table import html_table
from wsol.views.box_files import BoxJournal, overlay_path

Boxes = Mapping[str, tuple[tuple[int, int], Sequence[Finding]]]


def load(run: Run | Path | str, threshold: float | None = None, device: str = "auto") -> Finder:
    """The trained localizer of a run, ready to be called with a photo.

    Args:
        run: a run, its folder, the folder of a pack (`wsol.pack`), or `hf://owner/name`, a pack on the hub.
        threshold: in [0, 1). None takes the one that `evaluate` chose on held-out training images, or
            else the fixed one of the run's protocol. A head with a cut of its own (ddt) takes none.
        device: auto, cpu or cuda.

    >>> import wsol
    >>> find = wsol.load("runs/demo", device="cpu")
    >>> found = find("bird.jpg")
    >>> found.name in find.classes, found.box.area > 0, found.overlay().mode
    (True, True, 'RGB')
    """
    opened = run if isinstance(run, Run) else Run(run)
    if threshold is not None and not 0 <= threshold < 1:
        raise ConfigError(f"threshold {threshold} is outside 0 to 1")
    protocol = opened.protocol(opened.config.eval.protocol)
    if opened.config.classifier is not None:
        built = opened.classifier(device)
        opened.use_classifier(built)
        return as_finder(built, protocol.name, opened.threshold(protocol) if threshold is None else threshold)
    localizer = opened.localizer(device)
    cut = localizer.cut
    if cut is not None:
        if threshold is not None:
            raise ConfigError(f"threshold {threshold}: this run's head cuts its map itself, at {cut:g}")
        threshold = cut
    if threshold is None:
        threshold = opened.threshold(protocol)
    view = View(protocol.view, opened.config.data.image_size)
    classes = localizer.known_classes(opened.classes)
    return Finder(localizer, classes, protocol.name, protocol.extraction, threshold, view)


@dataclass(frozen=True)
class LocalizedPhotos:
    """What `localize` found, by the name of the photo: its size and the classes with their boxes.

    unreadable: why, for each photo that could not be read or written. files: what was written.
    """

    boxes: Boxes
    unreadable: Mapping[str, str]
    protocol: str
    threshold: float
    files: tuple[Path, ...] = ()

    def __len__(self) -> int:
        return len(self.boxes)

    def _repr_html_(self) -> str:
        rows = [["photo", "class", "score", "box"]]
        for name, (_, found) in self.boxes.items():
            box = ", ".join(f"{v:.0f}" for v in found[0].box)
            rows.append([name, display_name(found[0].name), f"{found[0].score:.2f}", box])
        return html_table(rows)


def localize(
    run: Run | Finder | Path | str,
    photos: Path | str | Sequence[Path | str],
    out: Path | str | None = None,
    *,
    topk: int = 5,
    class_name: str | None = None,
    threshold: float | None = None,
    overwrite: bool = False,
    device: str = "auto",
) -> LocalizedPhotos:
    """Find the object in new photos; no annotations are needed.

    With `out`, an overlay of each photo, boxes.json, boxes.csv and boxes_coco.json are written there; each
    photo is kept as soon as it is done, so that the same call goes on after a kill.

    Args:
        run: a run, its folder, or what `wsol.load` or `wsol.from_classifier` gave.
        photos: a photo, a folder of photos, or several of both.
        out: folder for the results; None writes nothing.
        topk: how many of the best classes to look for.
        class_name: look for this class instead.
        threshold: where maps are cut; by default the run's own, see `load`.
        overwrite: write into a folder that holds something else.
        device: auto, cpu or cuda.

    >>> import wsol
    >>> found = wsol.localize("runs/demo", "bird.jpg", "found", device="cpu")
    >>> list(found.boxes), sorted(p.name for p in found.files)
    (['bird.jpg'], ['boxes.csv', 'boxes.json', 'boxes_coco.json'])
    """
    if topk < 1:
        raise ConfigError(f"topk {topk}: at least 1 class is needed")
    if isinstance(run, Finder) and threshold is not None:
        raise ConfigError("threshold: give it to the function that made this localizer")
    given = [photos] if isinstance(photos, (str, Path)) else photos
    listed, unreadable = list_photos([Path(p) for p in given])
    if isinstance(run, Finder):
        finder, origin = run, {"run": run.described}
    else:
        opened = run if isinstance(run, Run) else Run(run)
        finder, origin = load(opened, threshold, device), _origin(opened)
    if class_name is not None:
        finder.find_class(class_name)  # an unknown name ends here, before anything is written
    if out is None:
        found = {
            name: (one.size, one.found)
            for name, one in _find_all(finder, listed, topk, class_name, unreadable, len(listed))
        }
        return LocalizedPhotos(found, unreadable, finder.protocol, finder.threshold)
    settings = {
        **origin,
        "protocol": finder.protocol,
        "threshold": finder.threshold,
        "topk": topk,
        "class": class_name,
    }
    with BoxJournal(Path(out), settings, overwrite) as journal:
        stamps = {name: photo_stamp(path) for name, path in listed.items()}
        done = journal.done(stamps)
        left = {name: path for name, path in listed.items() if name not in done}
        for name, one in _find_all(finder, left, topk, class_name, unreadable, len(listed)):
            try:
                _save_overlay(one, overlay_path(journal.folder, name))
            except RunFolderError as error:  # of this photo only: the others are still done
                unreadable[name] = str(error)
            journal.add(name, stamps[name], one.size, one.found)
        in_order = journal.done(stamps)
        files = journal.finish(in_order, finder.classes, unreadable)
    return LocalizedPhotos(in_order, unreadable, finder.protocol, finder.threshold, tuple(files))


def _origin(run: Run) -> dict[str, str]:
    """Which localizer it is: the run, and its checkpoint, which further training changes."""
    if run.config.classifier is not None:
        return {"run": str(run.path)}
    return {"run": str(run.path), "checkpoint": f"{run.checkpoint}, {run.checkpoint.digest[:12]}"}


def _save_overlay(one: Localization, path: Path) -> None:
    with replacing(path, parents=True) as draft:
        one.overlay().save(draft, "PNG")


def _find_all(
    finder: Finder,
    photos: Mapping[str, Path],
    topk: int,
    class_name: str | None,
    unreadable: dict[str, str],
    total: int,
) -> Iterator[tuple[str, Localization]]:
    """Every photo that can be read, with what is in it; the others go to `unreadable`."""
    done = total - len(photos)
    with tqdm(total=total, initial=done, unit=" photos", file=sys.stderr, disable=None, leave=False) as bar:
        for batch in batch_photos(photos):
            images, errors = read_photos(batch)
            unreadable |= errors
            yield from zip(images, finder.batch(list(images.values()), topk, class_name), strict=True)
            bar.update(len(batch))


def export(
    run: Run | Path | str, out: Path | str | None = None, *, format: str = "torch", overwrite: bool = False
) -> Path:
    """Write the localizer of a run as a file that runs without this toolkit; returns it.

    A JSON card beside it names the classes, the input and the threshold that turns a map into a box.

    Args:
        run: a run, or its folder.
        out: by default localizer.pt2 or localizer.onnx in the run folder.
        format: `torch` for a torch.export program, or `onnx`.
        overwrite: replace a file that exists.

    >>> import wsol
    >>> wsol.export("runs/other", "birds.pt2").name
    'birds.pt2'
    """
    if format not in SUFFIXES:
        raise ConfigError(f"format {format!r}: expected {' or '.join(SUFFIXES)}")
    opened = run if isinstance(run, Run) else Run(run)
    if opened.config.classifier is not None:
        raise ConfigError(f"{opened.path}: a run of a plain classifier; only trained localizers are exported")
    finder = load(opened, device="cpu")
    path = Path(out) if out is not None else opened.folder.exported(SUFFIXES[format])
    info = opened.checkpoint
    card = ModelCard(
        classes=finder.classes,
        view=finder.view,
        protocol=finder.protocol,
        threshold=finder.threshold,
        cut=finder.localizer.cut,
        origin={"run": str(opened.path), "checkpoint": info.name, "epoch": info.epoch, "digest": info.digest},
    )
    assert isinstance(finder.localizer, Localizer)
    write_model(finder.localizer, format, path, card, overwrite)
    return path
