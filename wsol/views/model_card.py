"""The model card of a pack: what the localizer is, what it was measured to do, and what it cannot do.

Every figure comes from the run's scores. The text around them lies in `templates/model_card.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsol.class_names import display_names
from wsol.drawing.grid import draw_grid, in_rows
from wsol.errors import ConfigError, DataError
from wsol.method_names import describe, method_name, network_name
from wsol.run import Run
from wsol.runs.files import replacing
from wsol.scoring.metrics import KINDS, headline_metrics
from wsol.scoring.protocols import find_protocols
from wsol.scoring.scores import Evaluation, Scores
from wsol.scoring.tables import percent, protocol_label, with_interval
from wsol.version import __version__
from wsol.views.picked import draw_picked

TEMPLATES = Path(__file__).with_name("templates")
PICTURES = 8
QUALITY = 88  # of the JPEG


@dataclass(frozen=True)
class FigureRow:
    """One line of a table: a figure with its interval, and that of the centre box, "" where it has none."""

    name: str
    value: str
    centre: str
    meaning: str


@dataclass(frozen=True)
class ProtocolTable:
    """The figures of one protocol. beaten: the figures in which the centre box is as good, in words."""

    protocol: str
    summary: str
    threshold: str
    rows: Sequence[FigureRow]
    beaten: str


@dataclass(frozen=True)
class PackCard:
    """What the template of the card shows.

    knows_classes: whether it names what it finds. refined: of a refined run, what its maps were learned from.
    """

    name: str
    license: str | None
    method: str
    network: str
    describes: str
    checkpoint: str
    digest: str
    classes: Sequence[str]
    data: str
    data_digest: str
    counts: Sequence[tuple[str, int]]
    image_size: int
    first_weights: str
    knows_classes: bool
    refined: str
    threshold: str
    manifest: str
    plugins: Sequence[Mapping[str, Any]]
    picture: str | None
    num_images: int = 0
    split: str = ""
    tables: Sequence[ProtocolTable] = ()
    misses: str = ""
    pictures: int = PICTURES
    version: str = __version__


def draw_pictures(run: Run, path: Path) -> int:
    """Draw test images, chosen at random, with what the run found on them; returns how many they are.

    Raises:
        DataError, RunFolderError: the run has no predictions, or its images are not on this machine.
    """
    picked = draw_picked([run], run.protocol(), "random", PICTURES)
    tiles = [image.tiles[0] for image in picked]
    if not tiles:
        raise DataError(f"{run.path}: none of its test images can be read")
    with replacing(path) as draft:
        draw_grid(in_rows(tiles)).save(draft, "JPEG", quality=QUALITY)
    return len(tiles)


def render_card(card: PackCard) -> str:
    """The card as Markdown with a head for the hub."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown: `plain` does it
    )
    environment.filters["plain"] = plain
    return environment.get_template("model_card.md").render(card=card)


def plain(text: object) -> str:
    """A name in Markdown: one line, and nothing in it is markup.

    >>> plain("a|b <c>`d`")
    'a\\\\|b &lt;c&gt;\\\\`d\\\\`'
    """
    line = " ".join(str(text).split()).replace("\\", "\\\\")
    for character in "|`*[]":
        line = line.replace(character, f"\\{character}")
    return line.replace("<", "&lt;").replace(">", "&gt;")


def make_card(run: Run, name: str, license: str | None, picture: str | None, pictures: int) -> PackCard:
    """The card of a run. picture: the file name of its picture, None where there is none."""
    config, data, info = run.config, run.data, run.checkpoint
    scores = run.scores if run.is_evaluated else None
    recorded = run.folder.read_json(run.folder.plugins)["plugins"] if run.folder.plugins.is_file() else []
    return PackCard(
        name=name,
        license=license,
        method=method_name(config),
        network=network_name(config),
        describes=describe(config, len(run.classes)),
        checkpoint=str(info),
        digest=info.digest,
        classes=display_names(run.classes),
        data=f"{config.data.root.name} (read as {config.data.name})",
        data_digest=data.digest,
        counts=[(split, count) for split, count in data.counts.items() if count],
        image_size=config.data.image_size,
        first_weights=_first_weights(run),
        knows_classes=run.source is not None
        if config.refine is not None
        else config.model.head.knows_classes,
        refined="" if config.refine is None else config.refine.method,
        threshold=_threshold(run, scores),
        manifest=run.folder.manifest.name,
        plugins=recorded,
        picture=picture,
        num_images=scores.num_images if scores is not None else 0,
        split=scores.split if scores is not None else "",
        tables=[_table(s) for s in scores.values()] if scores is not None else (),
        misses=_misses(scores) if scores is not None else "",
        pictures=pictures,
    )


def _table(scores: Scores) -> ProtocolTable:
    same = {"gt_known_loc": f"gt_known_loc_{scores.threshold_kind}"}  # the centre box's at the same threshold
    rows, beaten = [], []
    for key, metric in headline_metrics().items():
        if key not in scores:
            continue
        centre = scores.centre_box.get(same.get(key, key))
        shown = "" if centre is None else percent(centre)
        rows.append(FigureRow(metric.long, with_interval(scores, key), shown, metric.meaning))
        if centre is not None and scores[key] <= centre:
            beaten.append(metric.long)
    try:
        summary = find_protocols(scores.protocol)[0].summary
    except ConfigError:  # of a plugin that is not here
        summary = ""
    kind = KINDS[scores.threshold_kind] if scores.cut is None else "the head's own cut"
    threshold = f"{kind}, {scores.threshold:g}"
    return ProtocolTable(protocol_label(scores), summary, threshold, rows, ", ".join(beaten))


def _threshold(run: Run, scores: Evaluation | None) -> str:
    """How the maps of new photos are cut into boxes, and who chose where."""
    protocol = run.protocol(run.config.eval.protocol)
    how = f"Maps are cut into boxes as protocol `{protocol.name}` does, "
    cut = run.config.model.head.cut
    if cut is not None:
        return f"{how}where the head's own raw map is above {cut:g}. No threshold was chosen."
    value = run.threshold(protocol)
    own = scores[protocol.name] if scores is not None and protocol.name in scores else None
    if own is None or own.version != protocol.version or "held_out" not in own.at:
        return f"{how}at {value:g} of a map's range: the protocol's fixed threshold, which looked at no box."
    held = own.at["held_out"]
    assert scores is not None
    return (
        f"{how}at {value:g} of a map's range. This threshold was the best for GT-known localization on "
        f"{held.num_images or 0:,} training images ({scores.held_out_from}), by their "
        f"{held.num_boxes or 0:,} boxes. So boxes of training images were used to choose this one number; "
        "the weights never saw a box. No test image took part."
    )


def _misses(scores: Evaluation) -> str:
    """The images that count as misses for another reason than the localizer, in words."""
    counted = {
        "without a box": scores.images_without_boxes,
        **{kind.replace("_", " "): len(names) for kind, names in scores.faults.items()},
    }
    named = ", ".join(f"{number:,} {what}" for what, number in counted.items() if number)
    return f"Counted, and not left out: {named}." if named else ""


def _first_weights(run: Run) -> str:
    """How training began, in a sentence; of a refined run also that of the network that gives the classes."""
    config = run.config
    weights = config.model.weights if config.classifier is None else config.classifier.weights
    if weights == "none":
        text = "Training began with random weights."
    else:
        origin = (
            "weights trained on ImageNet" if weights == "imagenet" else f"the weights {Path(weights).name}"
        )
        text = f"Training began with {origin}, which have terms of use of their own."
    return (
        text
        if run.source is None
        else f"{text} The network that gives the classes: {_first_weights(run.source)}"
    )
