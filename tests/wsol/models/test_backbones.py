"""Backbones: stages that compute what the whole network does, where the drop blocks go, and bad names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.vgg import cfgs, make_layers

from wsol.errors import CheckpointError, ConfigError
from wsol.models.backbone import Backbone
from wsol.models.weights import Weights
from wsol.registry import BACKBONES

IMAGE = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
TF_MODEL = {"pad_type": "same", "bn_eps": 1e-3}


def make(name: str, weights: str | Path = "none", **options: Any) -> Backbone:
    made: Backbone = BACKBONES.create(name, weights=Weights(str(weights)), **options)
    return made


def run(backbone: Backbone, x: Tensor = IMAGE) -> dict[str, Tensor]:
    outputs: dict[str, Tensor] = backbone.eval()(x, reads=tuple(backbone.outline.features))
    return outputs


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


class TestTheCutIsTheNetwork:
    """A network saved under its public names gives the same features whole as in stages."""

    def test_vgg16(self, tmp_path: Path) -> None:
        layers = make_layers(cfgs["D"])
        torch.save(nn.ModuleDict({"features": layers}).state_dict(), tmp_path / "net.pth")
        outputs = run(make("vgg16", tmp_path / "net.pth"))
        ends = {"conv1_2": 4, "pool1": 5, "conv2_2": 9, "pool2": 10, "conv3_3": 16, "pool3": 17}
        ends |= {"conv4_3": 23, "pool4": 24, "conv5_3": 30}
        assert list(outputs) == list(ends)
        for name, end in ends.items():
            assert torch.equal(outputs[name], layers[:end](IMAGE))

    def test_resnet50(self, tmp_path: Path) -> None:
        whole = torchvision.models.resnet50().eval()
        torch.save(whole.state_dict(), tmp_path / "net.pth")
        backbone = make("resnet50", tmp_path / "net.pth")
        assert backbone.weights_report.left_over == ("fc.weight", "fc.bias")
        outputs = run(backbone)
        x = whole.maxpool(whole.relu(whole.bn1(whole.conv1(IMAGE))))
        assert torch.equal(outputs["maxpool"], x)
        for name in ("layer1", "layer2", "layer3"):
            x = getattr(whole, name)(x)
            assert torch.equal(outputs[name], x)
        # Stride 1 in the 3x3 convolution and in the shortcut, no dilation.
        whole.layer4[0].conv2.stride = whole.layer4[0].downsample[0].stride = (1, 1)
        assert torch.equal(outputs["layer4"], whole.layer4(x))

    @pytest.mark.parametrize(("variant", "options"), [("timm", {}), ("tf", TF_MODEL)])
    def test_mobilenet_v1(self, tmp_path: Path, variant: str, options: dict[str, Any]) -> None:
        whole = timm.create_model("mobilenetv1_100", **options).eval()
        for buffer in whole.buffers():  # a fresh BatchNorm would hide a wrong epsilon
            if buffer.is_floating_point():
                buffer.copy_(torch.rand_like(buffer) * 0.1)
        torch.save(tf_names(whole) if variant == "tf" else whole.state_dict(), tmp_path / "net.pth")
        outputs = run(make("mobilenet_v1", tmp_path / "net.pth", variant=variant))
        x = whole.bn1(whole.conv_stem(IMAGE))
        for i in range(4):
            x = whole.blocks[i](x)
            assert torch.equal(outputs[f"blocks{i}"], x)
        whole.blocks[4][0].conv_dw.stride = (1, 1)
        assert torch.equal(outputs["blocks4"], whole.blocks[4](x))
        assert outputs["blocks4"].shape[2:] == x.shape[2:]

    def test_mobilenet_v2(self, tmp_path: Path) -> None:
        whole = torchvision.models.mobilenet_v2().eval()
        torch.save(whole.state_dict(), tmp_path / "net.pth")
        outputs = run(make("mobilenet_v2", tmp_path / "net.pth"))
        assert torch.equal(outputs["block13"], whole.features[:14](IMAGE))
        whole.features[14].conv[1][0].stride = (1, 1)
        assert torch.equal(outputs["head"], whole.features(IMAGE))

    @pytest.mark.parametrize("name", ["resnet18", "mobilenetv2_100", "convnext_tiny", "densenet121"])
    def test_timm(self, tmp_path: Path, name: str) -> None:
        whole = timm.create_model(name).eval()
        torch.save(whole.state_dict(), tmp_path / "net.pth")
        backbone = make(f"timm:{name}", tmp_path / "net.pth")
        named = whole.feature_info if isinstance(whole.feature_info, list) else list(whole.feature_info)
        captured: list[Tensor] = []
        for stage in named:
            module = whole.get_submodule(stage["module"])
            module.register_forward_hook(lambda _module, _inputs, output: captured.append(output.clone()))
        whole(IMAGE)
        for ours, theirs in zip(run(backbone).values(), captured, strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5)
        assert [f.channels for f in backbone.outline.features.values()] == [
            stage["num_chs"] for stage in named
        ]
        assert [f.stride for f in backbone.outline.features.values()] == [
            stage["reduction"] for stage in named
        ]


def tf_names(network: Any) -> dict[str, Tensor]:
    """The tensors of timm's MobileNet V1 under the names of checkpoints converted from TensorFlow."""
    blocks = list(itertools.chain.from_iterable(network.blocks))
    modules = {"conv1.0": network.conv_stem, "conv1.1": network.bn1, "fc": network.classifier}
    for i, block in enumerate(blocks):
        modules |= {f"blocks.{i}.dw.0": block.conv_dw, f"blocks.{i}.dw.1": block.bn1}
        modules |= {f"blocks.{i}.pw.0": block.conv_pw, f"blocks.{i}.pw.1": block.bn2}
    return {f"{name}.{key}": t for name, module in modules.items() for key, t in module.state_dict().items()}


def test_a_checkpoint_of_the_other_variant_is_refused(tmp_path: Path) -> None:
    whole = timm.create_model("mobilenetv1_100")
    torch.save(tf_names(whole), tmp_path / "tf.pth")
    torch.save(whole.state_dict(), tmp_path / "timm.pth")
    with pytest.raises(CheckpointError, match=r"another network.*wants model\.backbone\.variant: tf"):
        make("mobilenet_v1", tmp_path / "tf.pth")
    with pytest.raises(CheckpointError, match=r"another network.*wants model\.backbone\.variant: timm"):
        make("mobilenet_v1", tmp_path / "timm.pth", variant="tf")


@pytest.mark.parametrize(
    ("name", "paper", "original", "gamma"),
    [
        ("vgg16", "pool1 pool2 pool3 pool4", "pool3 pool4 conv5_3", 0.8),
        ("resnet50", "conv1 maxpool layer2_0 layer3_0 layer4_0", "layer3_0 layer4_0 layer4", 0.9),
        ("mobilenet_v1", "stem blocks1_0 blocks2_0 blocks3_0 blocks4_0", "blocks3_0 blocks4_0 blocks4", 0.95),
        ("tiny", "stem stage1 stage2", "stage2 stage3", 0.9),
        ("timm:resnet18", "act1 layer1 layer2 layer3 layer4", "layer3 layer4", 0.9),
    ],
)
def test_placements(name: str, paper: str, original: str, gamma: float) -> None:
    backbone = make(name)
    assert backbone.outline.place("paper") == tuple(paper.split())
    assert backbone.outline.place("original") == tuple(original.split())
    assert backbone.outline.gamma == gamma
    last = list(backbone.outline.features)[-1]
    assert backbone.outline.place((last,)) == (last,)
    assert backbone.outline.place(last) == (last,)
    with pytest.raises(ValueError, match="no stage 'pol3'"):
        backbone.outline.place(("pol3",))
    with pytest.raises(ValueError, match="no placement or stage 'papr'; did you mean 'paper'"):
        backbone.outline.place("papr")


def test_the_paper_places_follow_every_stride() -> None:
    """Pooling and strided convolutions of the original networks, counted on those."""
    strided = {
        "vgg16": 5 - 1,  # the last pooling is gone
        "resnet50": 2 + 3,
        "mobilenet_v1": 1 + 4,
    }
    assert {name: len(make(name).outline.place("paper")) for name in strided} == strided


@pytest.mark.parametrize(
    ("name", "strides"),
    [
        ("vgg16", [8, 16, 16]),
        ("resnet50", [8, 16, 16]),
        ("mobilenet_v1", [8, 16, 16]),
        ("mobilenet_v2", [8, 16, 16]),
        ("timm:resnet18", [8, 16, 32]),
    ],
)
def test_hierarchical_heads_read_strides_8_16_and_the_end(name: str, strides: list[int]) -> None:
    backbone = make(name)
    assert [feature.stride for feature in backbone.outline.pyramid] == strides
    assert backbone.outline.pyramid[-1].name == list(backbone.stages)[-1]


def test_tiny_is_small() -> None:
    assert sum(p.numel() for p in make("tiny").parameters()) < 500_000


def test_output_stride_dilates() -> None:
    assert list(make("timm:resnet18", output_stride=16).outline.features.values())[-1].stride == 16


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("vgg17", {}, "unknown backbone 'vgg17'; did you mean 'vgg16'"),
        ("timm:resnet81", {}, "timm has no model 'resnet81'; did you mean 'resnet18'"),
        ("timm:vit_tiny_patch16_224", {}, "cannot be cut into stages"),
        ("timm:swin_tiny_patch4_window7_224", {}, "cannot be cut into stages"),
        ("timm:hrnet_w18_small", {}, "cannot be cut at 'stem': not a chain"),
        ("timm:resnet18", {"output_stride": 7}, "cannot build 'resnet18' with"),
    ],
)
def test_refuses(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(name, **options)


def test_a_stage_without_maps_is_refused() -> None:
    loaded = Weights("none").load(nn.Identity(), make("tiny").weights_report.normalisation)
    with pytest.raises(ConfigError, match=r"stage 'flat' puts out \(1, \d+\), not maps"):
        Backbone({"flat": nn.Flatten()}, loaded, {}, ("flat",), 0.9)


def test_the_hub_is_asked_after_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError
    from safetensors.torch import save_file

    network = timm.create_model("resnet18")
    path = tmp_path / "model.safetensors"
    save_file(network.state_dict(), path)
    asked = []

    def fake(repository: str, filename: str, local_files_only: bool = False) -> str:
        asked.append((repository, filename, local_files_only))
        if local_files_only:
            raise LocalEntryNotFoundError("not here")
        return str(path)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fake)
    monkeypatch.setattr("wsol.models.timm_network._hub_problem", lambda repository: None)
    backbone = make("timm:resnet18", "imagenet")
    assert [only for *_, only in asked] == [True, False]
    assert asked[0][0].startswith("timm/resnet18")
    assert set(backbone.weights_report.left_over) == {"fc.weight", "fc.bias"}
    assert backbone.pretrained == {name for name, _ in backbone.named_parameters()}


class TestStrides:
    @pytest.mark.parametrize(
        ("name", "options", "stage", "stride", "last"),
        [
            ("vgg16", {}, "conv4_3", 8, 16),
            ("vgg16", {"stride": {"pool5": 2}}, "conv5_3", 16, 32),
            ("vgg16", {"stride": {"pool3": 1}}, "pool3", 4, 8),
            ("mobilenet_v1", {"stride": {"blocks3_0": 1, "blocks4_0": 2}}, "blocks3", 8, 16),
            (
                "mobilenet_v1",
                {"variant": "tf", "stride": {"blocks3_0": 1, "blocks4_0": 2}},
                "blocks3",
                8,
                16,
            ),
            ("mobilenet_v2", {"stride": {"block14": 2}}, "block13", 16, 32),
            ("resnet50", {"stride": {"layer4_0": 2, "maxpool": 1}}, "layer3", 8, 16),
            ("resnet50", {"stride": {"layer3_0": 1, "pool4": 2}}, "layer3", 8, 16),
            ("vgg16", {"stride": "bas"}, "conv4_3", 8, 16),
            ("mobilenet_v1", {"stride": "bas"}, "blocks3", 8, 16),
            ("mobilenet_v2", {"stride": "bas"}, "block13", 8, 16),
            ("resnet50", {"stride": "bas"}, "layer3", 8, 16),
            ("resnet50", {"stride": "paper"}, "layer3", 16, 16),
            ("resnet50", {"variant": "keras"}, "layer3", 16, 16),
            ("tiny", {"stride": "bas"}, "stage2", 8, 8),
            ("tiny", {"stride": {"stage1": 1, "stage2": 4}}, "stage1", 2, 8),
        ],
    )
    def test_a_plan(self, name: str, options: dict[str, Any], stage: str, stride: int, last: int) -> None:
        backbone = make(name, **options)
        assert backbone.outline.features[stage].stride == stride
        assert backbone.outline.last.stride == last
        assert backbone.outline.last.name == list(backbone.outline.features)[-1]

    @pytest.mark.parametrize(
        ("name", "plan", "message"),
        [
            ("vgg16", {"pol4": 1}, r"model\.backbone\.stride\.pol4: no such stage; did you mean 'pool4'"),
            ("vgg16", {"conv5_3": 2}, "this stage has no stride of its own"),
            (
                "resnet50",
                {"layer3": 1},
                "layer3: this stage has no stride of its own; did you mean 'layer3_0'",
            ),
            ("mobilenet_v1", {"blocks4_0": 0}, "0 is not a stride"),
            ("mobilenet_v2", {"block15": 1}, "no such stage; did you mean"),
        ],
    )
    def test_refuses(self, name: str, plan: dict[str, int], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            make(name, stride=plan)

    def test_names_of_tensors_do_not_depend_on_cuts_or_plans(self) -> None:
        names: dict[str, dict[str, Any]] = {
            "resnet50": {"stride": "bas"},
            "vgg16": {"stride": {"pool5": 2}},
        }
        for name, options in names.items():
            assert list(make(name).state_dict()) == list(make(name, **options).state_dict())
        assert "stages.pool4.17.weight" in make("vgg16").state_dict()

    def test_the_max_pooling_before_layer4(self) -> None:
        torch.manual_seed(0)
        outputs = run(make("resnet50", stride="bas"))
        assert torch.equal(outputs["pool4"], nn.functional.max_pool2d(outputs["layer3"], 2))

    def test_keras_strides_in_the_first_convolution(self, tmp_path: Path) -> None:
        whole = torchvision.models.resnet50().eval()
        # float16 as such files are stored
        torch.save({k: v.half() for k, v in whole.state_dict().items()}, tmp_path / "net.pth")
        for name, tensor in whole.state_dict().items():
            if tensor.is_floating_point():
                whole.state_dict()[name].copy_(tensor.half().float())
        for layer in (whole.layer2, whole.layer3, whole.layer4):
            layer[0].conv1.stride, layer[0].conv2.stride = (2, 2), (1, 1)
        backbone = make("resnet50", tmp_path / "net.pth", variant="keras", stride={"layer4_0": 2})
        outputs = run(backbone)
        x = whole.maxpool(whole.relu(whole.bn1(whole.conv1(IMAGE))))
        for name in ("layer1", "layer2", "layer3", "layer4"):
            x = getattr(whole, name)(x)
            assert torch.equal(outputs[name], x)
        assert all(p.dtype == torch.float32 for p in backbone.parameters())
        with pytest.raises(ConfigError, match="no public weights"):
            make("resnet50", "imagenet", variant="keras")


class TestTail:
    @pytest.mark.parametrize("name", ["tiny", "vgg16", "timm:resnet18"])
    def test_is_the_rest_of_the_network(self, name: str) -> None:
        backbone = make(name)
        outputs = run(backbone)
        last = backbone.outline.last.name
        for stage, x in outputs.items():
            assert torch.equal(backbone.tail(stage, x), outputs[last])

    def test_taps_after_the_stages_that_run(self) -> None:
        backbone = make("tiny")
        outputs = run(backbone)
        taps: dict[str, Callable[[Tensor], Tensor]] = {"stage1": torch.zeros_like, "stage3": torch.neg}
        negated = backbone.tail("stage1", outputs["stage1"], taps)
        assert torch.equal(negated, -outputs["stage3"])

    def test_a_stage_that_does_not_exist(self) -> None:
        with pytest.raises(ValueError, match="no stage 'stage9'; did you mean"):
            make("tiny").tail("stage9", IMAGE)

    def test_detached_moves_no_parameter_and_no_buffer(self) -> None:
        torch.manual_seed(0)
        backbone = make("tiny").train()
        x = torch.rand(4, 32, 16, 16)
        before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
        with torch.enable_grad():
            x.requires_grad_()
            held = backbone.tail("stage1", x, detached=True)
            held.square().sum().backward()
            assert x.grad is not None
            held_gradient = x.grad.clone()
            assert all(p.grad is None for p in backbone.parameters())
            assert all(torch.equal(t, before[n]) for n, t in backbone.state_dict().items())
            # The plain pass computes the same: batch norm by this batch, the same gradient for x.
            x.grad.zero_()
            plain = backbone.tail("stage1", x)
            plain.square().sum().backward()
            assert torch.equal(plain, held)
            assert torch.equal(x.grad, held_gradient)
            assert any(p.grad is not None for p in backbone.parameters())
            assert not all(torch.equal(t, before[n]) for n, t in backbone.state_dict().items())


@pytest.mark.parametrize(("centred", "shift"), [(True, 0.0), (False, -3.5)])
def test_a_cell_of_tiny_looks_at_the_middle_of_its_square_where_it_is_centred(
    centred: bool, shift: float
) -> None:
    """The pixels that a cell depends on, by their first and last row: how far their middle is off."""
    backbone: Backbone = BACKBONES.create("tiny", weights=Weights("none"), centred=centred)
    for parameter in backbone.parameters():
        torch.nn.init.ones_(parameter)
    image = torch.ones(1, 3, 128, 128, requires_grad=True)
    cell = 8
    with torch.enable_grad():
        backbone.eval()(image, None, ("stage3",))["stage3"][0, 0, cell, cell].backward()
    assert image.grad is not None
    rows = image.grad[0, 0].abs().sum(dim=1).nonzero().flatten()
    middle = (rows.min() + rows.max()).item() / 2
    assert middle - (8 * cell + 3.5) == shift
