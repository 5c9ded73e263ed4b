"""Batches: order, shards, seeds, workers, and images that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from wsol.data.dataset import Batch, EpochSampler, EvalSampler, make_eval_loader, make_train_loader
from wsol.data.image import read_image
from wsol.data.transforms import View
from wsol.errors import ConfigError, DataError
from wsol.records import Sample


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    made = []
    for i in range(10):
        path = tmp_path / f"{i}.png"
        noise = np.random.default_rng(i).integers(0, 256, (40 + i, 60, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path)
        made.append(Sample(path.name, path, label=i % 3, boxes=(), split="train", size=(60, 40 + i)))
    return made


def train_epoch(samples: list[Sample], epoch: int, workers: int = 0, start: int = 0) -> list[Batch]:
    sampler = EpochSampler(len(samples), 4, seed=5)
    loader = make_train_loader(samples, sampler, resize=40, side=32, seed=5, workers=workers)
    sampler.set_epoch(epoch, start)
    return list(loader)


def same(a: Batch, b: Batch) -> bool:
    assert a.pixels is None
    assert b.pixels is None
    return all(torch.equal(x, y) for x, y in zip(a[:4], b[:4], strict=True))


def test_batches_are_uint8_and_labelled(samples: list[Sample]) -> None:
    batches = train_epoch(samples, 0)
    assert len(batches) == 2  # the incomplete third is dropped
    for batch in batches:
        assert batch.images.shape == (4, 3, 32, 32)
        assert batch.images.dtype == torch.uint8
        assert batch.images.is_contiguous()
        assert batch.labels.dtype == batch.indices.dtype == torch.int64
        assert not batch.failed.any()
        assert batch.labels.tolist() == [samples[i].label for i in batch.indices.tolist()]


def test_training_images_are_resized_as_test_images(samples: list[Sample]) -> None:
    """Without a crop the training square is the test square bit for bit, but for the flip."""
    sampler = EpochSampler(len(samples), len(samples), seed=5)
    loader = make_train_loader(samples, sampler, resize=24, side=24, seed=5)
    (tested,) = make_eval_loader(samples, View("resize", 24), batch=len(samples))
    flipped = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        (batch,) = loader
        for image, index in zip(batch.images, batch.indices.tolist(), strict=True):
            expected = tested.images[index]
            flipped.append(not torch.equal(image, expected))
            assert torch.equal(image, expected.flip(-1) if flipped[-1] else expected)
    assert any(flipped)
    assert not all(flipped)


def test_persistent_workers_give_the_same_batches_as_none(samples: list[Sample]) -> None:
    sampler = EpochSampler(len(samples), 4, seed=5)
    loader = make_train_loader(samples, sampler, resize=40, side=32, seed=5, workers=2)
    for epoch in (0, 1):  # the second epoch meets workers that are already running
        sampler.set_epoch(epoch)
        alone = train_epoch(samples, epoch)
        assert all(same(a, b) for a, b in zip(loader, alone, strict=True))
    assert not same(train_epoch(samples, 0)[0], train_epoch(samples, 1)[0])


def test_an_epoch_resumed_in_the_middle_goes_on_as_it_would_have(samples: list[Sample]) -> None:
    whole, rest = train_epoch(samples, 3), train_epoch(samples, 3, start=1)
    assert len(rest) == 1
    assert same(whole[1], rest[0])


def test_loading_does_not_touch_the_global_random_state(samples: list[Sample]) -> None:
    torch.manual_seed(0)
    before, numpy_before = torch.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    train_epoch(samples, 0)
    list(make_eval_loader(samples, View("resize", 32), batch=4))
    assert torch.equal(before, torch.get_rng_state())
    assert numpy_before == repr(np.random.get_state())  # noqa: NPY002


def test_evaluation_keeps_order_and_every_image(samples: list[Sample]) -> None:
    view = View("crop", 32)
    batches = list(make_eval_loader(samples, view, batch=4))
    assert [len(b.images) for b in batches] == [4, 4, 2]
    assert torch.cat([b.indices for b in batches]).tolist() == list(range(10))
    image = torch.cat([b.images for b in batches])[7].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(image, view.apply(read_image(samples[7].path)))


def test_an_unreadable_image_is_flagged_in_evaluation(samples: list[Sample]) -> None:
    samples[6].path.write_bytes(b"")
    batches = list(make_eval_loader(samples, View("resize", 32), batch=4, workers=1))
    failed = torch.cat([b.failed for b in batches])
    assert failed.nonzero().flatten().tolist() == [6]
    assert len(failed) == 10
    assert torch.cat([b.images for b in batches])[6].max() == 0


@pytest.mark.parametrize("workers", [0, 1])
def test_an_unreadable_image_stops_training_with_one_line(samples: list[Sample], workers: int) -> None:
    for sample in samples[2:9]:  # most of them, so that one is in a batch
        sample.path.write_bytes(b"")
    with pytest.raises(DataError, match=r"^\S+[2-8]\.png: empty file$"):
        train_epoch(samples, 0, workers)


@given(st.integers(1, 200), st.integers(1, 16), st.integers(1, 4), st.integers(0, 3), st.data())
def test_ranks_share_each_global_batch(
    num: int, each: int, world: int, epoch: int, data: st.DataObject
) -> None:
    batch = each * world
    if batch > num:
        with pytest.raises(ConfigError, match=f"set it to {num} or less"):
            EpochSampler(num, batch, seed=1)
        return
    start = data.draw(st.integers(0, num // batch))
    alone = list(EpochSampler(num, batch, seed=1, epoch=epoch))
    ranks = [list(EpochSampler(num, batch, 1, epoch, rank, world, start)) for rank in range(world)]
    assert len(alone) == num // batch
    indices = [index for keys in alone for _, index in keys]
    assert len(set(indices)) == len(indices) == num // batch * batch
    for step, keys in enumerate(alone[start:]):
        assert all(len(rank[step]) == each for rank in ranks)
        assert sorted(k for rank in ranks for k in rank[step]) == sorted(keys)
    assert all(len(rank) == len(alone) - start for rank in ranks)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return [i for keys in EpochSampler(50, 5, seed, epoch) for _, i in keys]

    assert order(0, 0) == order(0, 0)
    assert len({tuple(order(s, e)) for s in range(3) for e in range(3)}) == 9
    assert order(0, 0) != list(range(50))


def test_a_batch_that_ranks_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be split evenly over 3"):
        EpochSampler(100, 32, seed=0, world=3)


@given(st.integers(0, 100), st.integers(1, 16), st.integers(1, 5))
def test_evaluation_shards_are_whole_batches_without_padding(num: int, batch: int, world: int) -> None:
    alone = list(EvalSampler(num, batch))
    assert [i for keys in alone for _, i in keys] == list(range(num))
    shards = [EvalSampler(num, batch, rank, world) for rank in range(world)]
    assert sorted(keys for shard in shards for keys in shard) == alone
    assert [len(shard) for shard in shards] == [len(list(shard)) for shard in shards]
