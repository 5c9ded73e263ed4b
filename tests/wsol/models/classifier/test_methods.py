"""Every map method against its formula in plain NumPy, and the identities on a linear head."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.helpers.classifiers import (
    SIDE,
    SmallNet,
    WithHiddenLayer,
    images,
    make,
    maps_of,
    seeded,
    small_vit,
)
from wsol.models.classifier.localizer import ClassifierLocalizer
from wsol.models.classifier.methods.gradcam import GradCAM
from wsol.models.classifier.methods.layercam import LayerCAM
from wsol.models.classifier.network import Seen
from wsol.models.weights import IMAGENET
from wsol.notices import WsolNote
from wsol.registry import MAP_METHODS

Array = NDArray[np.float64]


def by_finite_differences(model: torch.nn.Module, features: Tensor, label: int) -> Array:
    """d z_label / d features behind `last`, in double precision, without autograd."""
    rest = torch.nn.Sequential(model.pool, torch.nn.Flatten(1), model.fc)  # type: ignore[arg-type]
    number, step = features.numel(), 1e-4
    moves = step * torch.eye(number, dtype=torch.double).reshape(number, *features.shape)
    with torch.no_grad():
        up, down = (rest(features.double() + sign * moves)[:, label] for sign in (1, -1))
    return ((up - down) / (2 * step)).reshape(features.shape).numpy()


def gradcam(a: Array, g: Array, z: float) -> Array:
    return np.einsum("c,chw->hw", g.mean(axis=(1, 2)), a)


def gradcampp(a: Array, g: Array, z: float) -> Array:
    alpha = np.where(g != 0, g**2 / (2 * g**2 + a.sum(axis=(1, 2), keepdims=True) * g**3 + 1e-6), 0)
    return np.einsum("c,chw->hw", (alpha * np.maximum(g, 0)).sum(axis=(1, 2)), a)


def xgradcam(a: Array, g: Array, z: float) -> Array:
    weights = (g * a).sum(axis=(1, 2)) / (a.sum(axis=(1, 2)) + 1e-7)
    return np.einsum("c,chw->hw", weights, a)


def bagcams(a: Array, g: Array, z: float) -> Array:
    product = (g / z if z > 0 else g) * a
    factor = 1 + product.mean(axis=(1, 2), keepdims=True)
    return np.maximum(factor * product, 0).sum(axis=0)


FORMULAS: dict[str, Callable[[Array, Array, float], Array]] = {
    "gradcam": gradcam,
    "gradcam++": gradcampp,
    "xgradcam": xgradcam,
    "layercam": lambda a, g, z: (np.maximum(g, 0) * a).sum(axis=0),
    "hirescam": lambda a, g, z: (g * a).sum(axis=0),
    "bagcams": bagcams,
}


@pytest.mark.parametrize("method", FORMULAS)
def test_a_gradient_method_is_its_formula(method: str) -> None:
    model, pictures = seeded(WithHiddenLayer), images(2)
    labels = torch.tensor([[0, 3], [4, 1]])
    localizer = make(model, method, "last")
    found = maps_of(localizer, pictures, labels)
    with torch.no_grad():
        features = model.last(model.first(localizer.normalise(pictures)))  # type: ignore[operator]
        scores = model(localizer.normalise(pictures))
    model = model.double()
    for n in range(2):
        for k in range(2):
            label = int(labels[n, k])
            gradient = by_finite_differences(model, features[n], label)
            plain = FORMULAS[method](features[n].double().numpy(), gradient, float(scores[n, label]))
            np.testing.assert_allclose(found[n, k], np.maximum(plain, 0), rtol=1e-3, atol=1e-5)


def test_cam_is_the_linear_layer_at_every_position() -> None:
    model, pictures = seeded(SmallNet), images()
    localizer = make(model, "cam")
    assert localizer.layer == "last"
    labels = torch.tensor([[0], [3], [2]])
    found = maps_of(localizer, pictures, labels)
    with torch.no_grad():
        features = model.last(model.first(localizer.normalise(pictures))).numpy()  # type: ignore[operator]
    weights = model.state_dict()["fc.weight"].numpy()
    for n, label in enumerate(labels[:, 0].tolist()):
        np.testing.assert_allclose(
            found[n, 0], np.einsum("c,chw->hw", weights[label], features[n]), atol=1e-5
        )


def test_cam_takes_a_relu_that_is_no_layer() -> None:
    """As torchvision's DenseNets have it: relu(features), then the pooling."""

    class Functional(SmallNet):
        def forward(self, x: Tensor) -> Tensor:
            features = self.last[1](self.last[0](self.first(x)))
            scores: Tensor = self.fc(self.pool(torch.relu(features)).flatten(1))
            return scores

    labels = torch.tensor([[0, 1], [3, 2], [2, 4]])
    localizer = make(seeded(Functional), "cam")
    assert localizer.layer == "last.1"
    expected = maps_of(make(seeded(SmallNet), "cam"), images(), labels)
    np.testing.assert_allclose(maps_of(localizer, images(), labels), expected, atol=1e-6)


def test_on_a_linear_head_gradcam_is_cam_and_layercam_is_cam_with_positive_weights() -> None:
    model, pictures = seeded(SmallNet), images()
    labels = torch.tensor([0, 3, 2])
    cam = maps_of(make(model, "cam"), pictures, labels)
    network = make(model, "gradcam").network
    x = make(model, "gradcam").normalise(pictures)
    seen = network.see(x, gradients=True)
    arguments = (seen.features, seen.gradients(labels), seen.scores.detach()[range(3), labels])
    cells = seen.features.shape[2] * seen.features.shape[3]
    np.testing.assert_allclose(GradCAM().combine(*arguments) * cells, cam, rtol=1e-4, atol=1e-6)
    positive = torch.einsum("nchw,nc->nhw", seen.features, model.fc.weight[labels].detach().relu())  # type: ignore
    np.testing.assert_allclose(LayerCAM().combine(*arguments) * cells, positive, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dead", [[], [0, 5], list(range(8))])
def test_scorecam_is_its_formula_whatever_its_batch(dead: list[int]) -> None:
    model, pictures = seeded(WithHiddenLayer), images(2)
    with torch.no_grad():
        model.last[1].bias[dead] = -100.0  # type: ignore[index, union-attr]  # the ReLU behind it gives zeros
    labels = torch.tensor([[1, 2], [0, 0]])
    localizer = make(model, "scorecam", "last")
    x = localizer.normalise(pictures)
    with torch.no_grad():
        features = model.last(model.first(x))  # type: ignore[operator]
    expected = np.zeros((2, 2, *features.shape[2:]))
    for n in range(2):
        scores = []
        for channel in features[n]:
            mask = torch.nn.UpsamplingBilinear2d(size=(SIDE, SIDE))(channel[None, None])
            mask = (mask - mask.min()) / (mask.max() - mask.min() + 1e-8)
            with torch.no_grad():
                scores.append(model(x[n : n + 1] * mask)[0])
        weights = torch.stack(scores).softmax(dim=0).numpy()
        for k in range(2):
            plain = np.einsum("c,chw->hw", weights[:, int(labels[n, k])], features[n].numpy())
            expected[n, k] = np.maximum(plain, 0)
    np.testing.assert_allclose(maps_of(localizer, pictures, labels), expected, rtol=1e-4, atol=1e-6)
    localizer.method = MAP_METHODS.create("scorecam", batch=3)
    np.testing.assert_allclose(maps_of(localizer, pictures, labels), expected, rtol=1e-4, atol=1e-6)


def qkv_of(kind: str, model: Any) -> list[tuple[Tensor, Tensor]]:
    """(weight, bias) of the projection to queries, keys and values of every block."""
    if kind == "torchvision":
        blocks = [block.self_attention for block in model.encoder.layers]
        return [(b.in_proj_weight, b.in_proj_bias) for b in blocks]
    return [(b.attn.qkv.weight, b.attn.qkv.bias) for b in model.blocks]


@pytest.mark.parametrize("kind", ["torchvision", "timm", "registers"])
def test_rollout_multiplies_the_attention_of_all_blocks(kind: str) -> None:
    model, pictures = small_vit(kind), images(2)
    localizer = make(model, "rollout")
    norms = [m for n, m in model.named_modules() if n.endswith((".ln_1", ".norm1"))]
    inputs: list[Tensor] = []
    hooks = [m.register_forward_hook(lambda _m, _i, output: inputs.append(output)) for m in norms]
    with torch.no_grad():
        model(localizer.normalise(pictures))
    for hook in hooks:
        hook.remove()
    tokens = inputs[0].shape[1]
    rolled = np.stack([np.eye(tokens)] * 2)
    for x, (weight, bias) in zip(inputs, qkv_of(kind, model), strict=True):
        q, k, _ = (
            (x @ weight.T + bias)
            .detach()
            .double()
            .numpy()
            .reshape(2, tokens, 3, 2, 8)
            .transpose(2, 0, 3, 1, 4)
        )
        products = np.exp(q @ k.transpose(0, 1, 3, 2) / np.sqrt(8))
        attention = (products / products.sum(axis=-1, keepdims=True)).mean(axis=1)
        rolled = (attention + np.eye(tokens)) / 2 @ rolled
    found = maps_of(localizer, pictures, torch.tensor([[0, 1], [2, 3]]))
    rows = rolled[:, 2:, 2:].mean(axis=1) if kind == "registers" else rolled[:, 0, 1:]
    expected = rows.reshape(2, 1, 4, 4)
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("method", sorted(set(MAP_METHODS.entries()) - {"cam"}))
def test_an_output_keeps_its_own_maps(method: str) -> None:
    localizer, labels = make(small_vit("timm"), method), torch.tensor([[0], [1]])
    first, second = images(2, seed=1), images(2, seed=2)
    before, after = localizer(first), localizer(second)
    for output, pictures in ((before, first), (after, second), (before, first)):
        np.testing.assert_array_equal(
            localizer.maps_for(output, labels).double().numpy(), maps_of(localizer, pictures, labels)
        )


def test_scorecam_runs_no_more_masked_images_at_once_than_its_batch() -> None:
    model = seeded(SmallNet)
    localizer = make(model, "scorecam", "last")
    localizer.method = MAP_METHODS.create("scorecam", batch=3)
    sizes: list[int] = []
    hook = model.register_forward_pre_hook(lambda _module, inputs: sizes.append(len(inputs[0])))
    maps_of(localizer, images(1), torch.tensor([[0]]))
    hook.remove()
    assert max(sizes) == 3
    assert sum(sizes) <= 1 + 1 + 8  # the image, an empty one, and one for each channel


@pytest.mark.parametrize("method", sorted(set(MAP_METHODS.entries()) - {"cam"}))
@pytest.mark.parametrize("kind", ["torchvision", "timm"])
def test_every_method_but_cam_works_on_a_transformer(kind: str, method: str) -> None:
    localizer = make(small_vit(kind), method)
    assert localizer.layer in ("encoder.layers.encoder_layer_2.ln_1", "blocks.2.norm1")
    found = maps_of(localizer, images(2), torch.tensor([[0, 1], [2, 3]]))
    assert found.shape == (2, 2, 4, 4)
    assert np.isfinite(found).all()
    assert found.max() > 0


def test_a_new_method_overrides_one_function() -> None:
    from wsol.models.classifier.methods.method import MapMethod

    class Loudest(MapMethod):
        def maps(self, seen: Seen, labels: Tensor) -> Tensor:
            return seen.features.amax(dim=1, keepdim=True).expand(-1, labels.shape[1], -1, -1)

    localizer = ClassifierLocalizer(seeded(SmallNet), Loudest(), "first", IMAGENET, SIDE)
    assert maps_of(localizer, images(), torch.zeros(3, 2, dtype=torch.long)).shape == (3, 2, 16, 16)


@pytest.mark.parametrize(("method", "told"), [("layercam", True), ("bagcams", True), ("gradcam", False)])
def test_a_layer_that_is_read_at_every_second_position_is_told(method: str, told: bool) -> None:
    model = seeded(SmallNet)
    reader = torch.nn.Conv2d(8, 8, kernel_size=1, stride=2)
    model.pool = torch.nn.Sequential(reader, torch.nn.AdaptiveAvgPool2d(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(model, method, "last")
    notes = [str(one.message) for one in caught if issubclass(one.category, WsolNote)]
    assert bool(notes) == told
    assert not notes or "reads 25% of its positions" in notes[0]
