"""Feature maps in a file without a name: a second look at them costs no second pass through the network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from wsol.errors import RunFolderError


class FeatureFile:
    """Arrays of one shape and dtype by name, on the disk. The file has no name and ends with the process.

    folder: on whose disk it lies; None for the system's folder of temporary files.

    >>> with FeatureFile() as kept:
    ...     kept.add("bird.jpg", np.ones((2, 3), np.float32))
    ...     "bird.jpg" in kept, kept["bird.jpg"].tolist()
    (True, [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `__exit__`
        self._where = folder or Path(tempfile.gettempdir())
        self._rows: dict[str, int] = {}
        self._like: NDArray[np.float32] = np.zeros(0, np.float32)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def names(self) -> list[str]:
        """In the order in which they came."""
        return list(self._rows)

    def add(self, name: str, array: NDArray[np.float32]) -> None:
        """Keep one array; all must have the shape of the first."""
        if not self._rows:
            self._like = np.empty_like(array)
        assert array.shape == self._like.shape, "arrays of different shapes"
        try:
            self._file.seek(len(self._rows) * self._like.nbytes)
            self._file.write(array.tobytes())
            self._file.flush()
        except OSError as error:
            raise RunFolderError(
                f"{self._where}: features could not be kept here: {error.strerror}; they take "
                f"{self._like.nbytes / 1e6:.1f} MB for each photo"
            ) from None
        self._rows[name] = len(self._rows)

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        self._file.seek(self._rows[name] * self._like.nbytes)
        content = self._file.read(self._like.nbytes)
        return np.frombuffer(content, self._like.dtype).reshape(self._like.shape).copy()

    def __enter__(self) -> FeatureFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
