"""What `wsol discover` writes: boxes in three formats, masks, overlays, a contact sheet, and the directions.

::

    boxes.json, boxes.csv, boxes_coco.json    as `wsol localize` writes them
    masks/NAME.png                            8 bits: 255 on the object, 0 elsewhere, in the size of the photo
    overlays/NAME.png                         the photo with heat and box
    contact_sheet.png                         up to 24 photos with their boxes
    directions.json                           of each group: its photos, what its direction explains, or why
                                              there is no common object

A photo without an object has an empty list of boxes, and neither mask nor overlay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from wsol.localization.discovered import DIRECTIONS, mask_path
from wsol.localization.found_object import FoundObject
from wsol.records import DataIndex, Sample
from wsol.runs.files import replacing, write_json
from wsol.views.box_files import overlay_path
from wsol.views.box_formats import PhotoBoxes, write_boxes
from wsol.views.contact_sheet import draw_contact_sheet


def write_pictures(folder: Path, name: str, found: FoundObject) -> None:
    """The mask and the overlay of one photo."""
    with replacing(mask_path(folder, name), parents=True) as draft:
        Image.fromarray(found.mask.astype(np.uint8) * 255).save(draft, "PNG")
    with replacing(overlay_path(folder, name), parents=True) as draft:
        found.localization.overlay().save(draft, "PNG")


def write_results(
    folder: Path,
    root: Path,
    photos: Mapping[str, Path],
    boxes: Mapping[str, PhotoBoxes],
    groups: Sequence[str],
    directions: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
    unreadable: Mapping[str, str],
) -> list[Path]:
    """The files about all photos; returns their paths.

    root: the folder of the photos. photos: their files by name. boxes: what was found, by name. groups: the
    names of the groups, which are the classes of the box files.
    """
    paths = write_boxes(folder, boxes, groups, settings, unreadable)
    write_json(folder / DIRECTIONS, directions)
    samples = [
        Sample(name, photos[name], found[0].label if found else 0, tuple(f.box for f in found), "test", size)
        for name, (size, found) in boxes.items()
    ]
    index = DataIndex("discovered", root, tuple(samples), tuple(groups))
    there = sum(bool(found) for _, found in boxes.values())
    sheet = draw_contact_sheet(
        index,
        folder / "contact_sheet.png",
        caption=lambda sample: Path(sample.name).name,
        counts=f"{there:,} objects in {len(boxes):,} photos",
    )
    return [*paths, folder / DIRECTIONS, sheet]
