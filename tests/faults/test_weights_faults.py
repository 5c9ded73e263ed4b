"""Files of weights that would fill the memory, or that hold what no network takes: one line, and soon."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from torch import Tensor

from wsol.errors import CheckpointError
from wsol.models.weights import read_state_dict


def test_a_file_that_inflates_is_refused_by_its_table_of_contents(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.pth", tmp_path / "packed.pth"
    torch.save({"weight": torch.zeros(1_000_000)}, plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert read_state_dict(plain)["weight"].shape == (1_000_000,)
    with pytest.raises(CheckpointError, match=r"packed\.pth: refused: its [\d,]+ bytes would inflate to 4,"):
        read_state_dict(packed)


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (torch.zeros(1).expand(10**12), r"shape \(1000000000000,\), but only 4 bytes stored"),
        (torch.zeros(3, 3).to_sparse(), "sparse_coo"),
        (torch.zeros(3, device="meta"), "without values: on the device meta"),
        (torch.zeros(3).to(torch.float8_e4m3fn), "float8_e4m3fn"),
        (torch.zeros(3, dtype=torch.complex64), "complex64"),
    ],
    ids=["expanded", "sparse", "meta", "float8", "complex"],
)
def test_tensors_that_are_no_weights_are_named(tmp_path: Path, tensor: Tensor, reason: str) -> None:
    torch.save({"good": torch.zeros(2), "odd": tensor}, tmp_path / "odd.pth")
    with pytest.raises(CheckpointError, match=rf"odd\.pth: (.*odd \({reason}\)|refused: )") as caught:
        read_state_dict(tmp_path / "odd.pth")
    assert "\n" not in str(caught.value)
