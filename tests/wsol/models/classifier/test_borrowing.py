"""A user's model is only borrowed: whatever happens, it is afterwards as it was."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.classifiers import SIDE, SmallNet, images, make, maps_of, seeded, small_vit
from wsol.errors import ConfigError
from wsol.models.classifier.localizer import ClassifierLocalizer
from wsol.models.classifier.methods.gradcam import GradCAM
from wsol.models.weights import IMAGENET
from wsol.registry import MAP_METHODS

LABELS = torch.tensor([[0], [3], [2]])


def state_of(model: nn.Module) -> dict[str, Any]:
    return {
        "tensors": {k: v.clone() for k, v in model.state_dict().items()},
        "modes": {n: m.training for n, m in model.named_modules()},
        "hooks": {
            n: [list(getattr(m, hooks)) for hooks in vars(m) if hooks.endswith("_hooks")]
            for n, m in model.named_modules()
        },
        "learning": {n: p.requires_grad for n, p in model.named_parameters()},
        "gradients": {n: p.grad for n, p in model.named_parameters()},
    }


def require_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    tensors, others = before.pop("tensors"), after.pop("tensors")
    assert all(torch.equal(tensors[k], others[k]) for k in tensors | others)
    assert before == after


@pytest.mark.parametrize("method", MAP_METHODS.entries())
def test_the_model_is_unchanged(method: str) -> None:
    model = small_vit("torchvision") if method == "rollout" else seeded(SmallNet)
    model.train()
    next(iter(model.children())).eval()  # a mixed state, as in fine-tuning
    first = next(iter(model.parameters()))
    first.requires_grad_(False)
    before = state_of(model)
    maps_of(make(model, method), images(), LABELS)
    require_same(before, state_of(model))


def test_the_model_is_unchanged_after_an_error() -> None:
    class Failing(SmallNet):
        fails = False

        def forward(self, x: Tensor) -> Tensor:
            if self.fails:
                raise ValueError("no")
            return super().forward(x)

    model = seeded(Failing).train()
    localizer = make(model, "gradcam")
    before = state_of(model)
    model.fails = True  # type: ignore[assignment]
    with pytest.raises(ValueError, match="no"):
        localizer(images())
    require_same(before, state_of(model))
    assert torch.is_grad_enabled()


def test_dropout_and_batch_norm_act_as_at_test() -> None:
    model = seeded(SmallNet)
    quiet = maps_of(make(model, "gradcam"), images(), LABELS)
    assert (maps_of(make(model.train(), "gradcam"), images(), LABELS) == quiet).all()


class NoGradAround(SmallNet):
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class NoGradInside(SmallNet):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.last(self.first(x))
        scores: Tensor = self.fc(self.pool(x).flatten(1))
        return scores


class Tupled(SmallNet):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), x


@pytest.mark.parametrize("kind", [NoGradAround, NoGradInside, Tupled])
def test_models_that_switch_gradients_off_give_the_same_maps(kind: type[nn.Module]) -> None:
    plain = maps_of(make(seeded(SmallNet), "gradcam"), images(), LABELS)
    assert (maps_of(make(seeded(kind), "gradcam"), images(), LABELS) == plain).all()
    frozen = seeded(SmallNet).requires_grad_(False)
    with torch.no_grad():
        assert (maps_of(make(frozen, "gradcam"), images(), LABELS) == plain).all()


@pytest.mark.parametrize("gradients", [True, False])
def test_a_layer_before_a_relu_in_place_keeps_its_own_features(gradients: bool) -> None:
    localizer = make(seeded(SmallNet), "hirescam", "last.1")
    seen = localizer.network.see(localizer.normalise(images()), gradients)
    assert seen.features.min() < 0  # what the ReLU behind it overwrites


def test_nothing_is_kept_from_photo_to_photo() -> None:
    localizer = make(seeded(SmallNet), "gradcam")

    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(one), Tensor) for one in gc.get_objects())

    maps_of(localizer, images(), LABELS)
    before = tensors()
    for _ in range(5):
        maps_of(localizer, images(), LABELS)
    assert tensors() <= before  # those of other tests may go meanwhile


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3 * SIDE**2, 5)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.fc(x.flatten(1))
        return scores


class Sealed(SmallNet):
    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


@pytest.mark.parametrize(
    ("model", "layer", "said"),
    [
        (seeded(SmallNet), "lst", "has no layer 'lst'; did you mean 'last'"),
        (seeded(SmallNet), "fc", "layer fc: its output (1, 5) holds no maps"),
        (seeded(Flat), "auto", "has no layer with maps"),
        (seeded(SmallNet).half(), "auto", "half precision (first.0.weight is float16)"),
        (seeded(SmallNet).bfloat16(), "auto", "half precision"),
        (nn.Conv2d(3, 5, 3), "auto", "not scores (images, classes)"),
    ],
)
def test_what_does_not_fit_is_one_line(model: nn.Module, layer: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClassifierLocalizer(model, GradCAM(), layer, IMAGENET, SIDE)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class Wasteful(SmallNet):
    """It runs its last layer once more, and does not use the result."""

    def forward(self, x: Tensor) -> Tensor:
        scores = super().forward(x)
        self.last(self.first(x))
        return scores


class UnderAutocast(SmallNet):
    """Parameters of 32 bits, computed with 16; float32 comes out again where `ends_in_full`."""

    ends_in_full = False

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = super().forward(x)
        return scores.float() if self.ends_in_full else scores


class UnderAutocastInside(UnderAutocast):
    ends_in_full = True


@pytest.mark.parametrize("kind", [UnderAutocast, UnderAutocastInside])
@pytest.mark.parametrize("method", ["cam", "gradcam", "scorecam"])
def test_autocast_inside_a_model_is_refused(kind: type[nn.Module], method: str) -> None:
    with pytest.raises(ConfigError, match=r"runs in half precision .*bfloat16.*torch.autocast"):
        make(seeded(kind), method, "last")


def test_a_layer_without_a_gradient_is_one_line() -> None:
    localizer = make(seeded(Wasteful), "gradcam", "last")
    with pytest.raises(ConfigError, match="layer last: no gradient reaches it"):
        maps_of(localizer, images(), LABELS)


def test_a_scripted_part_is_refused_and_leaves_no_hook() -> None:
    model = seeded(SmallNet)
    model.pool = torch.jit.script(nn.Sequential(nn.ReLU(), model.pool))  # type: ignore[arg-type]
    before = state_of(model)["hooks"]
    with pytest.raises(ConfigError, match="layer pool is TorchScript"):
        make(model, "gradcam")
    assert state_of(model)["hooks"] == before
    make(model, "gradcam", "last")


class Choosy(SmallNet):
    """It asserts the size of its images, as ViTs do."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[-1] == 64, "Expected 64\nbut got another"
        return super().forward(x)


class Unwilling(SmallNet):
    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError


@pytest.mark.parametrize(("kind", "said"), [(Choosy, "Expected 64"), (Unwilling, "NotImplementedError")])
def test_a_model_that_does_not_take_the_images_is_one_line(kind: type[nn.Module], said: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot take an image of 32x32: {said}$"):
        make(seeded(kind), "gradcam")


@pytest.mark.parametrize(("method", "said"), [("cam", "gradcam"), ("rollout", "needs a transformer")])
def test_a_method_that_does_not_fit_says_which_does(method: str, said: str) -> None:
    model = small_vit("torchvision") if method == "cam" else seeded(SmallNet)
    with pytest.raises(ConfigError, match=said):
        make(model, method)


def test_inference_mode_inside_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="inference mode"):
        make(seeded(Sealed), "gradcam")(images())
