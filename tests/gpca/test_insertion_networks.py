"""insert_attention on networks of torchvision and timm, at the places that the paper names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import timm
import torch
from torch import Tensor, nn
from torchvision.models import densenet121, resnet50, vgg16
from torchvision.models.detection import fcos_resnet50_fpn, ssd300_vgg16

from gpca import insert_attention


class Case(NamedTuple):
    build: Callable[[], nn.Module]
    after: str
    number: int  # of attentions
    part: str = ""  # what is exported, where the whole cannot be
    side: int = 64  # of the images that go into it
    few: str = ""  # where attentions go for the export, which takes minutes with all of them


def detector(build: Callable[..., nn.Module], **options: Any) -> Callable[[], nn.Module]:
    return lambda: build(weights=None, weights_backbone=None, num_classes=4, **options)


CASES = {
    "resnet50": Case(lambda: resnet50(weights=None), "layer?.?.bn3", 16),
    "densenet121": Case(
        lambda: densenet121(weights=None),
        "features.denseblock?.denselayer*.conv2",
        58,
        few="features.denseblock?.denselayer[1-4].conv2",
    ),
    "vgg16": Case(lambda: vgg16(weights=None), "features.29", 1),
    # What these two do after their features depends on the values, so their features alone are exported.
    "fcos": Case(detector(fcos_resnet50_fpn, min_size=64, max_size=64), "backbone", 5, "backbone"),
    "ssd300": Case(detector(ssd300_vgg16), "backbone.extra.0.6", 1, "backbone", 300),
    "timm resnet18": Case(lambda: timm.create_model("resnet18"), "layer?.?.bn2", 8),
    "timm mobilenetv3": Case(lambda: timm.create_model("mobilenetv3_small_050"), "blocks.?.0", 6),
}
IMAGES = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> tuple[Case, nn.Module]:
    torch.manual_seed(0)
    case = CASES[request.param]
    return case, case.build().eval()


def flat(output: Any) -> list[Tensor]:
    """The tensors of an output, whatever holds them."""
    if isinstance(output, Tensor):
        return [output]
    parts = output.values() if isinstance(output, dict) else output
    return [tensor for part in parts for tensor in flat(part)]


def check_same(output: Any, expected: Any, atol: float = 0.0) -> None:
    for one, other in zip(flat(output), flat(expected), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


@pytest.mark.long
def test_identity_changes_nothing_and_checkpoints_load(case: tuple[Case, nn.Module]) -> None:
    (_, after, number, *_), model = case
    with torch.no_grad():
        expected, state = model(IMAGES), model.state_dict()
        inserted = insert_attention(model, "identity", after=after, example=IMAGES)
        assert len(inserted.names) == number
        check_same(model(IMAGES), expected)
        assert list(model.state_dict()) == list(state)
        inserted.remove()

        inserted = insert_attention(model, "se", after=after, example=IMAGES)
        result = model.load_state_dict(state, strict=False)
        assert result.unexpected_keys == []
        assert set(result.missing_keys) == {
            f"{name}.{key}" for name, a in inserted.attentions.items() for key in a.state_dict()
        }
        model(IMAGES)
        assert set(inserted.masks) == set(inserted.names)
        check_same(copy.deepcopy(model)(IMAGES), model(IMAGES))
        inserted.remove()
        check_same(model(IMAGES), expected)
        assert list(model.state_dict()) == list(state)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["se", "gpca"])
def test_export_fx_and_compile_agree(case: tuple[Case, nn.Module], name: str) -> None:
    (_, after, _, part, side, few), model = case
    images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    options = {"variant": "mha"} if name == "gpca" else {}
    inserted = insert_attention(model, name, after=few or after, example=IMAGES, **options)
    exported = model.get_submodule(part)
    try:
        with torch.no_grad():
            expected = exported(images)
            program = torch.export.export(exported, (images,))
            check_same(program.module()(images), expected, atol=1e-5)
            traced = torch.fx.symbolic_trace(nn.Sequential(exported))
            check_same(traced(images), expected, atol=1e-5)
            torch._dynamo.reset()
            compiled = torch.compile(exported, backend="aot_eager", fullgraph=True)
            check_same(compiled(images), expected, atol=1e-5)
    finally:
        inserted.remove()
