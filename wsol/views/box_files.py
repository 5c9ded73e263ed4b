"""What `wsol localize` writes: overlays, files of boxes, and a journal, so that it goes on after a kill.

`boxes.jsonl` lies in the folder of results while photos are being looked at. Its first line holds the
settings, each further line one photo with its boxes and the *stamp* of its file (`wsol.data.photos`): a photo
that was changed since then is looked at again. Lines are only added, and each is written at once, so a kill
loses at most the photo that was being looked at. When all photos are done, `finish` writes the files of
`wsol.views.box_formats` and removes the journal.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from wsol.errors import RunFolderError
from wsol.localization.localized import Finding
from wsol.views.box_formats import PhotoBoxes, boxes_from_json, boxes_to_json, write_boxes
from wsol.views.output_folder import claim_folder, fit_name

BEGINNING = b'{"settings": '


class BoxJournal:
    """The journal in `folder`, open for adding photos.

    A journal that a killed process left is continued, where its settings are the same; other settings are
    refused. A folder that holds something else is refused. overwrite: write into such a folder anyway,
    and begin again where there is a journal.

    >>> import tempfile
    >>> from wsol.records import Box
    >>> folder = Path(tempfile.mkdtemp())
    >>> with BoxJournal(folder, {"threshold": 0.2}) as journal:
    ...     journal.add("bird.jpg", "1 2", (40, 30), [Finding(0, "crow", 0.9, Box(1, 2, 30, 20))])
    >>> with BoxJournal(folder, {"threshold": 0.2}) as journal:
    ...     done = journal.done({"bird.jpg": "1 2"})
    ...     list(done), [path.name for path in journal.finish(done, ["crow"], {})]
    (['bird.jpg'], ['boxes.json', 'boxes.csv', 'boxes_coco.json'])
    """

    NAME = "boxes.jsonl"

    def __init__(self, folder: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
        self.folder, self.path = folder, folder / self.NAME
        # As JSON gives them back, so that a tuple equals the list that is read.
        self.settings: dict[str, Any] = json.loads(json.dumps(dict(settings)))
        self._done: dict[str, tuple[str, PhotoBoxes]] = {}
        claim_folder(folder, overwrite or self.path.is_file())
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be opened: {error.strerror}") from None
        try:
            self._lock()
            if overwrite:
                os.ftruncate(self._descriptor, 0)
            self._continue()
        except BaseException:
            self.close()
            raise

    def done(self, stamps: Mapping[str, str]) -> dict[str, PhotoBoxes]:
        """Of the photos with these stamps, by name, those that are done; with what was found in them."""
        return {
            name: self._done[name][1]
            for name, stamp in stamps.items()
            if name in self._done and self._done[name][0] == stamp
        }

    def add(self, name: str, stamp: str, size: tuple[int, int], findings: Sequence[Finding]) -> None:
        """Note that a photo is done. stamp: of the file that was read. size: its width and height."""
        self._write({**boxes_to_json(name, (size, findings)), "stamp": stamp})
        self._done[name] = stamp, (size, findings)

    def finish(
        self, found: Mapping[str, PhotoBoxes], classes: Sequence[str], unreadable: Mapping[str, str]
    ) -> list[Path]:
        """Write boxes.json, boxes.csv and boxes_coco.json, remove the journal, and return the files' paths.

        found: the boxes in the order of the files. unreadable: why, for each photo that could not be read.
        """
        paths = write_boxes(self.folder, found, classes, self.settings, unreadable)
        self.path.unlink(missing_ok=True)
        self.close()
        return paths

    def close(self) -> None:
        """Close the file; what is done stays in it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> BoxJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(
                f"{self.folder}: another process is writing boxes there; wait for it or choose another --out"
            ) from None
        except OSError:
            pass  # a disk without locks

    def _continue(self) -> None:
        """Read the journal, and drop a last line that a kill cut short."""
        size = os.fstat(self._descriptor).st_size
        content = os.pread(self._descriptor, size, 0)
        if content[: len(BEGINNING)] != BEGINNING[: len(content)]:
            raise RunFolderError(f"{self.path}: not a journal of `wsol localize`; choose another --out")
        whole = 0
        for number, (line, end) in enumerate(_whole_lines(content)):
            try:
                record = json.loads(line)
                if number == 0:
                    self._require_same(record["settings"])
                else:
                    # Journals of before have no stamps: their photos are looked at again.
                    self._done[record["file"]] = record.get("stamp", ""), boxes_from_json(record)
            except (ValueError, KeyError, TypeError):
                break  # what follows a damaged line is done again
            whole = end
        os.ftruncate(self._descriptor, whole)
        os.lseek(self._descriptor, whole, os.SEEK_SET)
        if whole == 0:
            self._write({"settings": self.settings})

    def _require_same(self, settings: Any) -> None:
        if settings != self.settings:
            known = settings if isinstance(settings, dict) else {}
            keys = sorted({k for k in {**known, **self.settings} if known.get(k) != self.settings.get(k)})
            was = ", ".join(f"{k} {known.get(k)!r}, now {self.settings.get(k)!r}" for k in keys)
            raise RunFolderError(
                f"{self.path}: begun with other settings ({was}); use those, choose another --out, or begin "
                "again with --overwrite"
            )

    def _write(self, record: Mapping[str, Any]) -> None:
        left = (json.dumps(record) + "\n").encode()  # ASCII: a file name may hold bytes that are no UTF-8
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            raise RunFolderError(f"{self.path}: could not be written: {error.strerror}") from None


def _whole_lines(content: bytes) -> Iterator[tuple[bytes, int]]:
    """The lines that end with a line feed, and where each ends."""
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        yield content[start:end], end + 1
        start = end + 1


def overlay_path(folder: Path, name: str) -> Path:
    """Where the overlay of a photo goes: `folder/overlays/NAME.png`, below the same folders as the photo."""
    photo = Path(name)
    return folder / "overlays" / photo.parent / fit_name(photo.name, ".png")
