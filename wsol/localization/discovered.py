"""What `wsol discover` wrote, read again: which photos, and the mask of the object in each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.errors import DataError
from wsol.runs.file_names import fit_name

DIRECTIONS, BOXES = "directions.json", "boxes.json"


def mask_path(folder: Path, name: str) -> Path:
    """Where the mask of a photo goes: `folder/masks/NAME.png`, below the same folders as the photo."""
    photo = Path(name)
    return folder / "masks" / photo.parent / fit_name(photo.name, ".png")


@dataclass(frozen=True)
class DiscoveredFolder:
    """The results of `wsol discover`. photos: the folder that it looked at, and number how many it read.
    size: what the network saw."""

    path: Path
    photos: Path
    number: int
    size: int
    digest: str

    @classmethod
    def is_one(cls, path: Path) -> bool:
        return (path / DIRECTIONS).is_file() and (path / BOXES).is_file()

    @classmethod
    def open(cls, path: Path) -> DiscoveredFolder:
        """Raises DataError where the files are not those of `wsol discover`."""
        try:
            content = (path / BOXES).read_bytes()
            record = json.loads(content)
            photos, number = Path(record["photos"]), len(record["images"])
            return cls(path, photos, number, int(record["size"]), hashlib.sha256(content).hexdigest())
        except OSError as error:
            raise DataError.at(path / BOXES, None, f"cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise DataError.at(path / BOXES, None, "not what `wsol discover` writes") from None

    def mask(self, name: str, side: int) -> NDArray[np.float32]:
        """(side, side) the share of each cell that the object covers; 0 everywhere where it is not there."""
        path = mask_path(self.path, name)
        if not path.is_file():
            return np.zeros((side, side), dtype=np.float32)
        try:
            with Image.open(path) as picture:
                whole = np.asarray(picture.convert("L"), dtype=np.float32)
        except (OSError, ValueError) as error:
            raise DataError.at(path, None, f"this mask cannot be read: {error}") from None
        return np.asarray(cv2.resize(whole / 255, (side, side), interpolation=cv2.INTER_AREA))
