"""A batch transform: changes the images of a batch, and says which labels they have afterwards."""

from torch import Tensor

from wsol.models.heads.targets import LabelPairs
from wsol.registry import TRANSFORMS
from wsol.training.transforms.transform import BatchTransform


@TRANSFORMS.register("grey", "takes the colour out of some images")
class Grey(BatchTransform):
    """Each image becomes grey with the probability `rate`, so that shapes count and not colours alone."""

    def __init__(self, rate: float = 0.2) -> None:
        super().__init__()
        self.rate = rate

    def transform(self, images: Tensor, labels: Tensor) -> tuple[Tensor, LabelPairs]:
        chosen = (self.uniform(len(images)) < self.rate).to(images.device)
        grey = images.mean(dim=1, keepdim=True).expand_as(images)
        return grey.where(chosen[:, None, None, None], images), [(1.0, labels)]
