"""metrics.csv, written and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsol.errors import RunFolderError
from wsol.runs.history import Row, read_csv, to_csv

ROW: Row = {"epoch": 3, "lr": 0.0082, "loss": 1 / 3, "images_per_second": 212.4, "seconds": 48.2}


def test_the_csv_holds_floats_in_full_and_time_last(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "epoch": 4, "val_top1_cls": 0.1 + 0.2}]
    path = tmp_path / "metrics.csv"
    path.write_text(to_csv(rows))
    assert read_csv(path) == rows
    assert path.read_text().splitlines()[0].endswith("val_top1_cls,images_per_second,seconds")


@pytest.mark.parametrize(
    "content", [b"epoch,loss\n1,much\n", b"epoch\n1,2\n", b"epoch\n\xff\n", b'epoch\n"1\n']
)
def test_other_content_is_called_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"metrics\.csv: not the figures that a run writes"):
        read_csv(path)


def test_a_missing_file_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be read: No such file"):
        read_csv(tmp_path / "metrics.csv")
