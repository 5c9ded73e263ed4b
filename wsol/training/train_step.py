"""One optimizer step in two halves: `backward` computes gradients, `update` changes the weights.

Between the two, the caller can look at the loss and stop: nothing has changed yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from wsol import config
from wsol.data.dataset import Batch
from wsol.errors import ConfigError
from wsol.models.heads.targets import Targets, split_targets, weighted
from wsol.models.randomness import Random, seed_each
from wsol.runs.ranks import Ranks
from wsol.training.optimizer import make_optimizer
from wsol.training.precision import DTYPES
from wsol.training.transforms.transform import apply_transforms, make_transforms

if TYPE_CHECKING:
    from wsol.models.trainable import Trainable

SMALLEST_SCALE = 2.0**-14  # of the fp16 loss: below, after 30 halvings, overflow is not what is wrong


class TrainStep:
    """A model with its optimizer, on its device, wrapped as the config asks.

    The wrappers (DDP, torch.compile) are only called, never saved: the state is the model's own.
    """

    def __init__(self, model: Trainable, train: config.Train, ranks: Ranks) -> None:
        if train.batch_size % (train.accumulate * ranks.world):
            raise ConfigError(
                f"train.batch_size {train.batch_size} cannot be split evenly over {ranks.world} processes "
                f"with train.accumulate {train.accumulate} parts each"
            )
        if train.sync_bn:
            if ranks.device.type != "cuda":
                raise ConfigError("train.sync_bn: torch synchronizes batch norm on GPUs only")
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        if train.freeze is not None:
            try:
                model.freeze(train.freeze)
            except ValueError as error:
                raise ConfigError(f"train.freeze: {error}") from None
        self._format = torch.channels_last if train.channels_last else torch.contiguous_format
        model.to(ranks.device).to(memory_format=self._format)
        self.model = model
        self.optimizer = make_optimizer(model, train)
        self._parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.transforms = make_transforms(train.transforms, tuple(model.mean.flatten().tolist()))
        seed_each(self._random_transforms(), train.seed)
        self._train = train
        self._device = ranks.device
        self._precision = DTYPES[train.amp]
        self._scaler = torch.amp.GradScaler(ranks.device.type, enabled=train.amp == "fp16")
        wrapped: nn.Module = torch.compile(model) if train.compile else model  # type: ignore[assignment]
        if ranks.world > 1:
            devices = [ranks.device] if ranks.device.type == "cuda" else None
            wrapped = DistributedDataParallel(wrapped, device_ids=devices)
        self._wrapped = wrapped

    def set_rate(self, rate: float) -> None:
        """The base learning rate of the next update; every group has its multiple of it."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["multiplier"]

    def set_epoch(self, epoch: float) -> None:
        """How far the training is, in epochs, for the losses that depend on it (`Head.epoch`)."""
        self.model.set_epoch(epoch)

    def backward(self, batch: Batch) -> dict[str, float]:
        """Forward and backward in `accumulate` parts. Returns sums over the images; no weight has changed.

        Every part is weighted by its share of the batch, so the gradient is that of the batch's mean loss.
        The transforms change the batch before it is split. Where one mixes labels, the model's forward
        pass gets none.
        """
        self.optimizer.zero_grad(set_to_none=True)
        figures: dict[str, float] = {}
        size = len(batch.labels)
        parts = self._train.accumulate
        for number, (images, targets) in enumerate(self._parts(batch, size // parts), start=1):
            labels = targets if isinstance(targets, Tensor) else None
            with self._sync(number == parts):
                with torch.autocast(self._device.type, self._precision, enabled=self._precision is not None):
                    output = self._wrapped(images, labels)
                    terms = self.model.loss(output, targets)
                    loss = torch.stack(list(terms.values())).sum()
                self._scaler.scale(loss * (len(images) / size)).backward()
            for name, value in self._figures(output.logits, targets, loss, terms).items():
                figures[name] = figures.get(name, 0.0) + value * len(images)
        figures["images"] = size
        return figures

    def gradient_norm(self) -> float:
        """The norm of the whole gradient, over all ranks; clipped where the config says so."""
        self._scaler.unscale_(self.optimizer)
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        if self._train.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self._train.clip_norm, norm)
        return norm.item()

    @property
    def skips_overflow(self) -> bool:
        """Whether an infinite gradient comes from fp16's loss scale, which the scaler then lowers."""
        return self._scaler.is_enabled() and self._scaler.get_scale() > SMALLEST_SCALE

    def update(self) -> None:
        """Change the weights. After `gradient_norm`."""
        self._scaler.step(self.optimizer)
        self._scaler.update()

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
        }

    def load_optimizer(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        if state["scaler"]:
            self._scaler.load_state_dict(state["scaler"])

    def random_modules(self) -> Iterator[tuple[str, Random]]:
        """Every part of the training that draws from a generator of its own, with its name."""
        yield from self.model.random_modules()
        yield from self._random_transforms()

    def _random_transforms(self) -> Iterator[tuple[str, Random]]:
        return ((f"transforms.{i}", transform) for i, transform in enumerate(self.transforms))

    def _parts(self, batch: Batch, size: int) -> Iterator[tuple[Tensor, Targets]]:
        """The transformed batch in parts of `size` images, on the device."""
        images: Tensor = batch.images
        targets: Targets = batch.labels
        if self.transforms:
            images, labels = images.to(self._device), batch.labels.to(self._device)
            images, targets = apply_transforms(self.transforms, images, labels)
        if batch.pixels is not None:
            targets = batch.pixels
        for part, of_part in zip(images.split(size), split_targets(targets, size), strict=True):
            part = part.to(self._device, non_blocking=True).contiguous(memory_format=self._format)
            if isinstance(of_part, Tensor):
                of_part = of_part.to(self._device, non_blocking=True)
            yield part, of_part

    def _sync(self, last: bool) -> AbstractContextManager[None]:
        """Ranks exchange gradients once in a step, in the backward pass of its last part."""
        if isinstance(self._wrapped, DistributedDataParallel) and not last:
            return self._wrapped.no_sync()
        return nullcontext()

    @torch.no_grad()
    def _figures(
        self, logits: Tensor, targets: Targets, loss: Tensor, terms: dict[str, Tensor]
    ) -> dict[str, float]:
        """Means over a part: the loss and its terms, how much the attention masks vary, and the accuracy of a
        head that knows classes."""
        values = {"loss": loss}
        if self.model.knows_classes:
            best = logits.argmax(1)
            values["accuracy"] = weighted(lambda labels: (best == labels).double().mean(), targets)
        if len(terms) > 1:
            values |= {f"loss_{name}": term for name, term in terms.items()}
        deviations = [mask.double().std(dim=1).mean() for mask in self.model.masks() if mask.shape[1] > 1]
        if deviations:
            values["mask_std"] = torch.stack(deviations).mean()
        # One transfer for all of them: on a GPU each would wait for the device.
        numbers = torch.stack([v.double() for v in values.values()]).tolist()
        return dict(zip(values, numbers, strict=True))
