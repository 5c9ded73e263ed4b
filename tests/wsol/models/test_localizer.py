"""The localizer as a whole: input, maps, randomness, parameter groups, and configs that cannot be built."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import gpca
from gpca import available_attentions
from wsol.config import Attention, Backbone, Drop, Head, Model, Tap
from wsol.config_file import config_from_dict
from wsol.data.hierarchy import Hierarchy
from wsol.errors import ConfigError
from wsol.models.backbone import Outline
from wsol.models.detached import call_detached
from wsol.models.drops.adl import ADL
from wsol.models.heads.cam import CAM
from wsol.models.heads.class_maps import select_maps
from wsol.models.heads.head import MakeAttention, Tail
from wsol.models.heads.targets import Targets
from wsol.models.localizer import Localizer, build_localizer
from wsol.records import LocalizerOutput
from wsol.registry import ATTENTIONS, HEADS

TREE = Hierarchy.from_table(
    ("species", "family", "order"),
    [("wren", "wrens", "perching"), ("finch", "finches", "perching"), ("teal", "ducks", "waterfowl")],
)


PLAIN, NARROW = Drop.of("none"), Head.of("cam", channels=8)


def build(
    backbone: str = "tiny",
    drop: Drop = PLAIN,
    head: Head = NARROW,
    attention: str = "identity",
    classes: int = 3,
    hierarchy: Hierarchy | None = None,
    image_size: int | None = None,
    **settings: Any,
) -> Localizer:
    torch.manual_seed(0)
    model = Model(
        backbone=Backbone.of(backbone),
        drop=drop,
        head=head,
        attention=Attention.of(attention),
        **{"weights": "none", **settings},
    )
    return build_localizer(model, classes, hierarchy, image_size)


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (2, 3, 64, 64), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


class TestInput:
    def test_bytes_and_floats_are_the_same_image(self, images: torch.Tensor) -> None:
        localizer = build().eval()
        assert torch.allclose(localizer(images).logits, localizer(images.float() / 255).logits, atol=1e-6)

    def test_is_normalised_by_what_the_weights_expect(self, images: torch.Tensor) -> None:
        x = build().normalise(images)
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        expected = (images.permute(0, 2, 3, 1) / 255 - mean) / std
        assert torch.allclose(x, expected.permute(0, 3, 1, 2), atol=1e-6)
        black = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
        assert torch.equal(build("mobilenet_v1").normalise(black), torch.full((1, 3, 64, 64), -1.0))

    def test_the_normalisation_travels_with_the_weights(self) -> None:
        localizer = build()
        other = build()
        other.mean.zero_()
        other.load_state_dict(localizer.state_dict())
        assert torch.equal(other.mean, localizer.mean)

    def test_channels_last(self, images: torch.Tensor) -> None:
        localizer = build(attention="gpca").eval()
        expected = localizer(images)
        localizer = localizer.to(memory_format=torch.channels_last)
        output = localizer(images.contiguous(memory_format=torch.channels_last))
        assert torch.allclose(output.maps, expected.maps, atol=1e-5)

    def test_double_precision(self, images: torch.Tensor) -> None:
        assert build().double()(images).logits.dtype == torch.float64


class TestMaps:
    def test_the_maps_of_given_classes(self, images: torch.Tensor) -> None:
        localizer = build().eval()
        output = localizer(images)
        labels = torch.tensor([[2, 0], [1, 1]])
        maps = localizer.maps_for(output, labels)
        assert maps.shape == (2, 2, 8, 8)
        for image in range(2):
            for place in range(2):
                assert torch.equal(maps[image, place], output.maps[image, labels[image, place]])
        assert torch.equal(localizer.maps_for(output, labels[:, 1]), maps[:, 1])

    @pytest.mark.parametrize("head", ["cam", "danet"])
    def test_logits_are_the_means_of_the_maps(self, images: torch.Tensor, head: str) -> None:
        output = build(head=Head.of(head, channels=8), hierarchy=TREE)(images)
        torch.testing.assert_close(output.maps.mean(dim=(2, 3)), output.logits)

    def test_masks_are_those_of_the_last_forward_pass(self, images: torch.Tensor) -> None:
        localizer = build(attention="constant")
        assert localizer.masks() == []
        localizer(images)
        assert [mask.tolist() for mask in localizer.masks()] == [[[0.5] * 3] * 2]


class TestRandomness:
    drop = Drop.of("adl", drop_rate=0.5)

    def test_every_random_module_is_listed(self) -> None:
        localizer = build(drop=self.drop, attention="srp")
        names = [name for name, _ in localizer.random_modules()]
        assert names == ["taps.stem", "taps.stage1", "taps.stage2", "head.attention"]
        danet = build(head=Head.of("danet", channels=8, levels=("species",)))
        assert [name for name, _ in danet.random_modules()] == ["head"]
        assert list(build().random_modules()) == []

    def test_a_seed_repeats_training_and_differs_between_modules(self, images: torch.Tensor) -> None:
        localizer = build(drop=self.drop, attention="srp")
        localizer.seed(7)
        states = [module.rng_state() for _, module in localizer.random_modules()]
        assert all(not torch.equal(states[0], other) for other in states[1:])
        first = [localizer(images).logits for _ in range(4)]
        localizer.seed(7)
        assert all(torch.equal(localizer(images).logits, logits) for logits in first)
        localizer.seed(8)
        assert not all(torch.equal(localizer(images).logits, logits) for logits in first)

    def test_saved_states_continue_in_a_copy(self, images: torch.Tensor) -> None:
        localizer = build(drop=self.drop)
        localizer(images)
        saved = {name: module.rng_state() for name, module in localizer.random_modules()}
        other = copy.deepcopy(localizer)
        then = [localizer(images).logits for _ in range(4)]
        other.seed(99)
        for name, module in other.random_modules():
            module.set_rng_state(saved[name])
        assert all(torch.equal(other(images).logits, logits) for logits in then)


class TestDrops:
    def test_gamma_is_the_backbones_unless_the_config_sets_it(self) -> None:
        def gammas(localizer: Localizer) -> list[float]:
            return [tap.gamma for tap in localizer.taps.values() if isinstance(tap, ADL)]

        assert gammas(build("vgg16", Drop.of("adl"))) == [0.8] * 4
        assert gammas(build(drop=Drop.of("adl", gamma=0.3))) == [0.3] * 3

    def test_placements(self) -> None:
        assert list(build(drop=Drop.of("adl", placement="original")).taps) == ["stage2", "stage3"]
        assert list(build(drop=Drop.of("adl", placement=("stage3", "stem"))).taps) == ["stem", "stage3"]

    def test_a_tap_acts_where_it_stands(self, images: torch.Tensor) -> None:
        localizer = build(drop=Drop.of("adl", placement=("stage3",), drop_rate=1.0, gamma=0.0)).eval()
        seen: list[torch.Tensor] = []
        localizer.head.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]["stage3"]))
        localizer.train()(images)
        assert (seen[0] == 0).all()  # gamma 0 hides every cell
        localizer.eval()(images)
        assert (seen[1] != 0).any()


class TestTaps:
    def test_the_short_form_is_a_tap(self, images: torch.Tensor) -> None:
        short = build(drop=Drop.of("adl", placement="original", gamma=0.5))
        long = build(taps=(Tap.of("adl", after="original", gamma=0.5),))
        for localizer in (short, long):
            localizer.seed(0)
        assert torch.equal(short(images).logits, long(images).logits)
        assert [n for n, _ in short.random_modules()] == [n for n, _ in long.random_modules()]

    def test_attentions_have_the_channels_of_their_stage_and_act_at_test_too(
        self, images: torch.Tensor
    ) -> None:
        localizer = build(taps=(Tap.of("constant", after=("stem", "stage2"), value=0.25),)).eval()
        plain = build().eval()
        assert [tap.channels for tap in localizer.taps.values()] == [16, 64]
        x = localizer.normalise(images)
        ours = localizer.backbone(x, localizer.taps, reads=("stem",))["stem"]
        assert torch.equal(ours, plain.backbone(x, reads=("stem",))["stem"] / 4)
        assert localizer(images).logits.shape == (2, 3)
        assert localizer.masks() == []

    def test_several_act_in_order(self) -> None:
        taps = (Tap.of("se", after="stage3"), Tap.of("adl", after="stage3"))
        localizer = build(drop=Drop.of("dgdm", placement=("stage3",)), taps=taps)
        kinds = [type(module).__name__ for module in localizer.taps["stage3"].children()]
        assert kinds == ["DGDM", "SE", "ADL"]
        names = [n for n, _ in localizer.named_parameters() if n.startswith("taps")]
        assert names == ["taps.stage3.1.fc1.weight", "taps.stage3.1.fc2.weight"]

    def test_the_tail_with_and_without_taps_and_with_held_weights(self, images: torch.Tensor) -> None:
        localizer = build(taps=(Tap.of("se", after=("stage2",)),))
        x = torch.rand(4, 32, 16, 16, requires_grad=True)
        plain = localizer.backbone.tail("stage1", x)
        assert torch.equal(localizer.tail("stage1", x, taps=False), plain)
        assert not torch.equal(localizer.tail("stage1", x), plain)
        held = localizer.tail("stage1", x, detached=True)
        assert torch.equal(held, localizer.tail("stage1", x))
        held.sum().backward()
        assert x.grad is not None
        assert all(p.grad is None for p in localizer.parameters())


class TestParameterGroups:
    def test_every_parameter_is_in_one_group(self) -> None:
        localizer = build(attention="gpca")
        groups = localizer.parameter_groups()
        names = [name for group in groups for name in group.names]
        assert sorted(names) == sorted(name for name, _ in localizer.named_parameters())

    def test_pretrained_biases_and_theta(self, tmp_path: Path) -> None:
        backbone = build().backbone.stages
        state = {k: v for k, v in backbone.state_dict().items() if not k.startswith("stage3.1.0")}
        torch.save(state, tmp_path / "tiny.pth")
        localizer = build(attention="gpca", weights=str(tmp_path / "tiny.pth"), allow_missing=("stage3.1.0",))
        found = {name: group for group in localizer.parameter_groups() for name in group.names}
        assert found["backbone.stages.stem.0.weight"].pretrained
        assert not found["backbone.stages.stage3.1.0.weight"].pretrained
        assert not found["head.class_maps.0.weight"].pretrained
        assert found["head.class_maps.0.bias"].bias
        assert not found["head.class_maps.0.weight"].bias
        assert {name for name, group in found.items() if not group.decay} == {"head.attention.raw_theta"}


def test_the_heads_layers_start_as_danet_starts_them() -> None:
    localizer = build(head=Head.of("cam", channels=64))
    for layer in localizer.head.modules():
        if isinstance(layer, nn.Conv2d):
            assert layer.bias is not None
            assert not layer.bias.any()
            fan = layer.weight[0].numel() + layer.weight[:, 0].numel()
            assert layer.weight.abs().max() <= (6 / fan) ** 0.5 * 1.0001
            assert layer.weight.std().item() == pytest.approx((2 / fan) ** 0.5, rel=0.1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.long
def test_torch_compile_sees_the_same_network(images: torch.Tensor) -> None:
    localizer = build(drop=Drop.of("adl"), attention="gpca")
    compiled = torch.compile(localizer, backend="eager")
    localizer.seed(1)
    expected = localizer(images)
    localizer.seed(1)
    output = compiled(images)
    assert torch.allclose(output.logits, expected.logits, atol=1e-5)
    assert len(localizer.masks()) == 1


def test_every_attention_of_gpca_can_be_named() -> None:
    assert set(ATTENTIONS.entries()) == set(available_attentions())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": 1}, "at least 2 classes"),
        ({"backbone": "tinny"}, "unknown backbone 'tinny'; did you mean 'tiny'"),
        ({"drop": Drop.of("adl", gamma=1.5)}, r"model\.drop: adl: gamma must be from 0 to 1"),
        (
            {"drop": Drop.of("adl", placement=("stage9",))},
            r"model\.drop\.placement: no stage 'stage9'; did you mean 'stage",
        ),
        ({"taps": (Tap.of("se", after="stag1"),)}, r"model\.taps\[0\]\.after: no placement or stage 'stag1'"),
        ({"taps": (Tap.of("sf", after="stem"),)}, "unknown tap 'sf'"),
        ({"taps": (Tap.of("se", ratio=0),)}, r"model\.taps\[0\]: se: ratio must be at least 1"),
        ({"drop": Drop.of("adk")}, "unknown drop 'adk'; did you mean 'adl'"),
        ({"head": Head.of("cam", channels=-1)}, r"model\.head: cam: channels must be at least 0"),
        ({"image_size": 8}, "8x8 are too small for this backbone: they leave a map of 1x1; use at least 16"),
        ({"backbone": "vgg16", "image_size": 4}, "too small for this backbone, stage"),
        ({"head": Head.of("danet")}, r"model\.head: danet: needs a hierarchy.*levels: \[species\]"),
        ({"weights": "imagenet"}, "no public weights"),
    ],
)
def test_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(**settings)


@pytest.mark.parametrize(
    ("options", "tree", "classes", "message"),
    [
        (
            {"levels": ("genus", "species")},
            TREE,
            3,
            "no level 'genus': the hierarchy has species,",
        ),
        ({"levels": ("order",)}, TREE, 3, "species is what the localizer predicts"),
        ({}, TREE, 4, "the hierarchy has 3 species, the data set 4 classes"),
        ({}, TREE.subset(["wren", "finch"]), 2, r"of one order, .*levels: \[species, family\]"),
        ({"maps_per_class": 1, "levels": ("species",)}, None, 3, "leaves no two maps to compare"),
    ],
)
def test_danet_refuses(options: dict[str, Any], tree: Hierarchy | None, classes: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(head=Head.of("danet", channels=8, **options), hierarchy=tree, classes=classes)


def test_danet_without_a_hierarchy_learns_the_classes_alone(images: torch.Tensor) -> None:
    localizer = build(head=Head.of("danet", channels=8, levels=("species",)))
    output = localizer(images)
    assert set(localizer.loss(output, torch.tensor([0, 2]))) == {"species", "divergence"}


def test_danet_reads_the_last_stages(images: torch.Tensor) -> None:
    localizer = build("vgg16", head=Head.of("danet", levels=("species", "family")), hierarchy=TREE)
    assert localizer.head.reads == ("pool4", "conv5_3")
    widths = [m.out_channels for m in localizer.head.modules() if isinstance(m, nn.Conv2d)]
    assert widths == [1024, 1024, 3 * 8, 1024, 1024, 3 * 8]


def test_an_attention_registered_with_gpca_is_enough(
    images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpca.registry._ATTENTIONS", dict(gpca.registry._ATTENTIONS))

    @gpca.register_attention("brightest")
    class Brightest(gpca.SpatialAttention):
        """Weigh each place by its mean over the channels."""

        def __init__(self, channels: int, power: float = 1.0) -> None:
            super().__init__(channels)
            self.power = power

        def compute_map(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(dim=1).relu() ** self.power

    config = config_from_dict(
        {
            "model": {
                "backbone": "tiny",
                "weights": "none",
                "attention": {"name": "brightest", "power": 2.0},
                "taps": [{"name": "brightest", "after": "stage2"}],
            }
        }
    )
    localizer = build_localizer(config.model, classes=3)
    assert localizer(images).logits.shape == (2, 3)
    assert localizer.masks() == []  # it has a map of places, and no mask of channels
    with pytest.raises(ConfigError, match="attention 'brightest' takes no option 'pwoer'"):
        config_from_dict({"model": {"attention": {"name": "brightest", "pwoer": 2.0}}})
    with pytest.raises(TypeError, match="register_attention"):
        ATTENTIONS.register("x", "y")


class Erasing(CAM):
    """A head that looks again at what is left when the true class's area is erased at a middle stage."""

    needs_labels: ClassVar[bool] = True

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        stage: str = "stage1",
        channels: int = 8,
        twice: bool = True,
    ) -> None:
        super().__init__(outline, classes, hierarchy, make_attention, channels)
        middle = outline.find(stage)
        self.reads = (*self.reads, stage)
        self.generator = nn.Conv2d(middle.channels, classes, 3, padding=1)
        self.twice = twice

    def forward(
        self, features: Mapping[str, torch.Tensor], labels: torch.Tensor | None, tail: Tail
    ) -> LocalizerOutput:
        output = super().forward(features, labels, tail)
        x = features[self.reads[1]]
        maps = self.generator(x).sigmoid()
        if labels is None or not self.twice:
            return output
        area = select_maps(maps, labels)[:, None]
        rest = tail(self.reads[1], x.detach() * (1 - area), taps=False, detached=True)
        erased = call_detached(self.class_maps, rest)
        return output._replace(extras={"erased": erased, "area": area})

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, torch.Tensor]:
        return {"background": output.extras["erased"].mean(), "area": output.extras["area"].mean()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_head_that_erases_and_looks_again(
    images: torch.Tensor, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """What BAS needs: the second pass reaches the generator alone, and leaves no trace in the buffers."""
    monkeypatch.setattr(HEADS, "_entries", dict(HEADS.entries()))
    HEADS.register("erasing", "for this test")(Erasing)
    labels = torch.tensor([0, 2])

    def trained(twice: bool) -> Localizer:
        localizer = build(drop=Drop.of("dgdm"), head=Head.of("erasing", twice=twice))
        localizer.seed(0)
        model = torch.compile(localizer, backend="aot_eager") if compiled else localizer
        output = model(images, labels)
        if twice:
            torch.stack(list(localizer.loss(output, labels).values())).sum().backward()
        return localizer

    twice, once = trained(True), trained(False)
    reached = {name for name, p in twice.named_parameters() if p.grad is not None and p.grad.any()}
    below = {
        n
        for n, _ in twice.named_parameters()
        if n.startswith(("backbone.stages.stem", "backbone.stages.stage1"))
    }
    assert {"head.generator.weight", "head.generator.bias"} <= reached
    assert reached <= below | {"head.generator.weight", "head.generator.bias"}
    for (name, a), b in zip(twice.named_buffers(), once.buffers(), strict=True):
        assert torch.equal(a, b), name
    # No drop block draws in the second pass.
    for (_, one), (_, other) in zip(twice.random_modules(), once.random_modules(), strict=True):
        assert torch.equal(one.rng_state(), other.rng_state())
    with pytest.raises(ConfigError, match=r"model\.head: erasing: no stage 'stage9'; did you mean"):
        build(head=Head.of("erasing", stage="stage9"))
