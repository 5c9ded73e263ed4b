"""Classifiers by name, their weights, and which of their classes stand for those of a data set."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from tests.helpers.classifiers import SmallNet, images, make, seeded
from wsol.errors import CheckpointError, ConfigError, DataError
from wsol.models.classifier.class_table import (
    MappedClasses,
    OwnClass,
    match_classes,
    read_class_names,
    read_class_table,
)
from wsol.models.classifier.opening import model_digest, open_classifier

CLASSES = tuple("abcde")


def test_torchvision_and_timm_by_name() -> None:
    net = open_classifier("torchvision:squeezenet1_1", "none")
    assert (len(net.classes), net.classes[14], net.image_size) == (1000, "indigo bunting", 224)
    lite = open_classifier("timm:tf_efficientnet_lite0", "none", CLASSES)
    assert (lite.classes, lite.normalisation.mean, lite.image_size) == (CLASSES, (0.5, 0.5, 0.5), 224)
    assert lite.model(torch.zeros(1, 3, 64, 64)).shape == (1, 5)


@pytest.mark.parametrize("name", ["googlenet", "inception_v3", "efficientnet_v2_l", "resnet18"])
def test_torchvisions_input_is_what_its_public_weights_expect(name: str) -> None:
    """As (x - mean) / std, where torchvision normalises first and some networks rescale that inside."""
    public = torchvision.models.get_model_weights(name).DEFAULT
    x = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    preset = public.transforms()
    expected = torchvision.transforms.functional.normalize(x, preset.mean, preset.std)
    if name in ("googlenet", "inception_v3"):
        with torch.device("meta"):
            inside = torchvision.models.get_model(
                name, weights=None, init_weights=False, transform_input=True
            )
        expected = inside._transform_input(expected)
    with torch.device("meta"):  # their tensors do not matter here
        found = open_classifier(f"torchvision:{name}", "none").normalisation
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (found.mean, found.std))
    torch.testing.assert_close((x - mean) / std, expected)


def test_a_function_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_nets.py").write_text(
        "from tests.helpers.classifiers import SmallNet, seeded\n"
        "def small(): return seeded(SmallNet)\n"
        "def wrong(): return 3\n"
        "def broken(): return 1 / 0\n"
    )
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_classifier("own_nets:small").model, SmallNet)
    for name, said in (
        ("own_nets:wrong", "returned int, not an nn.Module"),
        ("own_nets:broken", "ZeroDivisionError"),
        ("own_nets:nothing", "has no attribute 'nothing'"),
        ("no_such_module:net", "No module named 'no_such_module'"),
    ):
        with pytest.raises(ConfigError, match=said):
            open_classifier(name)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("torchvision:resnet5", {}, "torchvision has no classifier 'resnet5'; did you mean 'resnet"),
        ("timm:resnet5", {}, "timm has no model 'resnet5'; did you mean"),
        ("resnet50", {}, "expected torchvision:NAME, timm:NAME or module:function"),
        ("timm:resnet18", {"variant": "keras"}, "has no variants"),
        ("torchvision:squeezenet1_1", {"variant": "keras"}, "is no ResNet with bottlenecks"),
        ("torchvision:resnet50", {"variant": "caffe"}, "unknown variant 'caffe'"),
    ],
)
def test_unknown_names_are_one_line(name: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught, torch.device("meta"):
        open_classifier(name, "none", classes=CLASSES, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_a_file_fit_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "net.safetensors"
    network = torchvision.models.squeezenet1_1(num_classes=5)
    state = {k: v.half() for k, v in network.state_dict().items()}
    save_file(state, file)
    opened = open_classifier("torchvision:squeezenet1_1", str(file), CLASSES)
    assert opened.weights == "net.safetensors"
    assert opened.digest
    assert next(opened.model.parameters()).dtype == torch.float32  # 16 bits on the disk only
    assert torch.equal(opened.model.state_dict()["features.0.weight"], state["features.0.weight"].float())

    cases = {
        "lacks features.0.bias": {k: v for k, v in state.items() if k != "features.0.bias"},
        "has left over more": {**state, "more": torch.zeros(1)},
        "has other shapes: classifier.1.bias (3,) for (5,); name its classes (--classes)": {
            **state,
            "classifier.1.bias": torch.zeros(3),
        },
    }
    for said, wrong in cases.items():
        save_file(wrong, file)
        with pytest.raises(CheckpointError) as caught:
            open_classifier("torchvision:squeezenet1_1", str(file), CLASSES)
        assert said in str(caught.value)
    with pytest.raises(CheckpointError, match="no such weights file"):
        open_classifier("torchvision:squeezenet1_1", str(tmp_path / "none.pth"), CLASSES)


def test_weights_that_do_not_download_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> Path:
        raise OSError("no network")

    monkeypatch.setattr("wsol.models.classifier.opening.download", fail)
    with pytest.raises(CheckpointError, match=r"cannot download .*squeezenet1_1 \(no network\)"):
        open_classifier("torchvision:squeezenet1_1")


def test_the_keras_variant_moves_the_strides() -> None:
    with torch.device("meta"):  # their tensors do not matter here
        plain = open_classifier("torchvision:resnet50", "none", CLASSES).model
        moved = open_classifier("torchvision:resnet50", "none", CLASSES, variant="keras").model
    for net, strides in ((plain, ((1, 1), (2, 2))), (moved, ((2, 2), (1, 1)))):
        assert (net.layer3[0].conv1.stride, net.layer3[0].conv2.stride) == strides  # type: ignore[index,union-attr]


def test_a_digest_tells_models_apart() -> None:
    assert model_digest(seeded(SmallNet)) == model_digest(seeded(SmallNet))
    assert model_digest(seeded(SmallNet)) != model_digest(seeded(SmallNet, seed=1))


def test_classes_are_matched_by_name_or_by_table() -> None:
    wanted, own = ["001.Blue_Jay", "002.Crow"], ["car", "crow", "jay"]
    assert match_classes(wanted, own, {"Blue Jay": "jay"}) == {0: 2, 1: 1}
    assert match_classes(wanted, own, {"001.Blue_Jay": "2", "Crow": "car"}) == {0: 2, 1: 0}
    assert match_classes(wanted, own, {}) == {1: 1}
    for table, said in (({"Blue Jya": "jay"}, "no class 'Blue Jya'"), ({"Crow": "cra"}, "no class 'cra'")):
        with pytest.raises(ConfigError, match=said):
            match_classes(wanted, own, table)


def test_files_of_names_and_tables(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("a\n\nb\n")
    assert read_class_names(file) == ("a", "b")
    file.write_text('Blue Jay, jay\n\n"Crow, black",1\n')
    assert read_class_table(file) == {"Blue Jay": "jay", "Crow, black": "1"}
    for text, said in (
        ("a,b\na,c\n", ":2: the class 'a' is listed twice"),
        ("a\n", ":1: expected 2 columns"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            read_class_table(file)
    with pytest.raises(DataError, match="cannot be read"):
        read_class_names(tmp_path / "none.txt")


def test_mapped_and_own_classes() -> None:
    localizer = make(seeded(SmallNet), "gradcam")
    output = localizer(images())
    mapped = MappedClasses(localizer, [4, 2])
    there = mapped(images())
    assert torch.equal(there.logits, output.logits[:, [4, 2]])
    labels = torch.tensor([[0, 1], [1, 1], [0, 0]])
    assert torch.equal(
        mapped.maps_for(there, labels), localizer.maps_for(output, torch.tensor([4, 2])[labels])
    )

    own = OwnClass(localizer, 7)
    there = own(images())
    assert there.logits.shape == (3, 7)
    assert not there.logits.any()
    best = localizer.maps_for(output, output.logits.argmax(dim=1))
    assert torch.equal(own.maps_for(there, labels), best[:, None].expand(3, 2, *best.shape[1:]))
