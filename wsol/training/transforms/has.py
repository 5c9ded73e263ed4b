"""HaS, hide-and-seek."""

from __future__ import annotations

import torch
from torch import Tensor

from wsol.models.heads.targets import LabelPairs
from wsol.registry import TRANSFORMS
from wsol.training.transforms.transform import BatchTransform


@TRANSFORMS.register("has", "hide-and-seek: hides random cells of a grid (Singh and Lee, 2017)")
class HaS(BatchTransform):
    """Hide each cell of a grid over the image with a probability, so that the network looks at other parts.

        x(h, w) = mean    where the cell (floor(h / s), floor(w / s)) is hidden, which is 0 once normalised

    Cells at the right and lower edge of the image end there. The side s is drawn for each image from `cells`.

    Singh and Lee, "Hide-and-Seek: Forcing a Network to be Meticulous for Weakly-supervised Object and Action
    Localization", ICCV 2017. `cells: [32]` is HaS-32; the authors' mixture is [0, 16, 32, 44, 56].

    Args:
        cells: sides of a cell in pixels. Each image draws one of them; 0 leaves the image as it is.
        rate: probability that a cell is hidden.

    Raises:
        ValueError: no cells or a negative one, or a rate outside 0 to 1.
    """

    def __init__(
        self, mean: tuple[float, float, float], cells: tuple[int, ...] = (32,), rate: float = 0.5
    ) -> None:
        super().__init__()
        if not cells or min(cells) < 0:
            raise ValueError(f"cells must be sides in pixels, 0 or more, got {list(cells)}")
        if not 0 <= rate <= 1:
            raise ValueError(f"rate must be from 0 to 1, got {rate}")
        self.mean = mean
        self.cells = cells
        self.rate = rate

    def transform(self, images: Tensor, labels: Tensor) -> tuple[Tensor, LabelPairs]:
        hidden = torch.stack([self._hidden(*images.shape[2:]) for _ in images]).to(images.device)
        colour = torch.tensor(self.mean, dtype=images.dtype, device=images.device)[:, None, None]
        return torch.where(hidden[:, None], colour, images), [(1.0, labels)]

    def _hidden(self, height: int, width: int) -> Tensor:
        """Which pixels of one image are hidden: bool (H, W)."""
        side = self.cells[int(self.integers(len(self.cells)))]
        if side == 0:
            return torch.zeros(height, width, dtype=torch.bool)
        rows, columns = -(-height // side), -(-width // side)
        cells = self.uniform(rows, columns) < self.rate
        return cells.repeat_interleave(side, 0).repeat_interleave(side, 1)[:height, :width]
