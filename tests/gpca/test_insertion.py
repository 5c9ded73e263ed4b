"""Attention put into networks: what stays as it was, what the handle says, what is refused."""

import copy
import doctest
import io
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import gpca.cost
import gpca.insertion
from gpca import GPCA, SE, available_attentions, insert_attention
from gpca.registry import attention_class


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu(self.bn(self.conv(x)) + x)
        return out


class Network(nn.Module):
    """A small residual network: a stem, two blocks in a Sequential, a pooling and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.act = nn.ReLU()
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.down(self.blocks(self.act(self.stem(x)))))
        out: Tensor = self.fc(self.pool(x).flatten(1))
        return out


X = torch.rand(2, 3, 12, 10, generator=torch.Generator().manual_seed(0))
BLOCKS = "blocks.?.bn"


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    return Network().eval()


def test_identity_changes_neither_outputs_nor_keys(network: Network) -> None:
    expected, keys = network(X), list(network.state_dict())
    inserted = insert_attention(network, "identity", after=BLOCKS, example=X)
    assert inserted.names == ("blocks.0.bn.attention", "blocks.1.bn.attention")
    assert torch.equal(network(X), expected)
    assert list(network.state_dict()) == keys
    assert (inserted.parameters, inserted.multiply_adds()) == (0, 0)


@pytest.mark.parametrize("name", list(available_attentions()))
def test_the_output_of_a_module_is_attended(network: Network, name: str) -> None:
    """The attention applied by hand to what the module put out is what the next module gets."""
    plain = copy.deepcopy(network)
    inserted = insert_attention(network, name, after="stem", example=X)
    (attention,) = inserted.attentions.values()
    assert isinstance(attention, attention_class(name))
    x = plain.act(attention(plain.stem(X)))
    by_hand = plain.fc(plain.pool(plain.act(plain.down(plain.blocks(x)))).flatten(1))
    torch.testing.assert_close(network(X), by_hand)
    assert inserted.masks or inserted.maps
    assert set(inserted.masks) | set(inserted.maps) == set(inserted.names)


def test_a_plain_checkpoint_loads_with_the_attention_alone_missing(network: Network) -> None:
    plain = copy.deepcopy(network).state_dict()
    inserted = insert_attention(network, "se", after=BLOCKS, example=X)
    result = network.load_state_dict(plain, strict=False)
    assert result.unexpected_keys == []
    assert result.missing_keys == [
        f"{name}.{layer}.weight" for name in inserted.names for layer in ("fc1", "fc2")
    ]


def test_remove_leaves_no_trace(network: Network) -> None:
    expected, keys, modules = network(X), list(network.state_dict()), list(network.named_modules())
    inserted = insert_attention(network, "se", after=[BLOCKS, "stem"], example=X)
    assert not torch.equal(network(X), expected)
    inserted.remove()
    assert torch.equal(network(X), expected)
    assert list(network.state_dict()) == keys
    assert list(network.named_modules()) == modules
    assert inserted.names == ()
    inserted.remove()


def test_what_the_handle_says(network: Network) -> None:
    inserted = insert_attention(network, "se", after=BLOCKS, example=X[:1], ratio=2)
    assert inserted.parameters == 2 * (2 * 8 * 4)
    assert inserted.multiply_adds() == 2 * (2 * 8 * 4)
    assert inserted.multiply_adds(X) == 2 * inserted.multiply_adds()  # two images
    assert repr(inserted) == "Insertion: 2 SE attentions, 128 parameters"
    one = insert_attention(network, "constant", after="stem", example=X)
    assert repr(one) == "Insertion: 1 Constant attention, 0 parameters"
    one.remove()
    assert repr(one) == "Insertion: no attentions, 0 parameters"
    network(X)
    assert {name: tuple(mask.shape) for name, mask in inserted.masks.items()} == dict.fromkeys(
        inserted.names, (2, 8)
    )
    assert inserted.maps == {}
    nlnet = insert_attention(network, "nlnet", after="stem", example=X[:1])
    places = 12 * 10
    assert nlnet.multiply_adds() == 4 * 8 * 4 * places + 2 * places**2 * 4
    assert nlnet.multiply_adds(X[:1, :, :6]) == 4 * 8 * 4 * places // 2 + 2 * (places // 2) ** 2 * 4


def test_the_model_is_as_before_but_for_the_attention(network: Network) -> None:
    """The run that looks at shapes changes no mode, statistic or other hook."""
    network.train()
    network.blocks[0].eval()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    inserted = insert_attention(network, "bam", after=BLOCKS, example=X)
    assert [network.blocks[i].training for i in (0, 1)] == [False, True]
    assert [attention.training for attention in inserted.attentions.values()] == [False, True]
    inserted.multiply_adds()
    assert all(torch.equal(network.state_dict()[key], value) for key, value in before.items())


def test_copies_and_pickles_hold_their_own_attention(network: Network) -> None:
    inserted = insert_attention(network, "se", after=[BLOCKS, "stem"], example=X)
    expected = network(X)
    again = pickle.loads(pickle.dumps(network))
    copied = copy.deepcopy(network)
    with torch.no_grad():
        for attention in inserted.attentions.values():
            assert isinstance(attention, SE)
            attention.fc2.weight.add_(3)
    assert not torch.allclose(network(X), expected)
    assert torch.equal(copied(X), expected)
    assert torch.equal(again(X), expected)
    inserted.remove()
    assert torch.equal(copied(X), expected)


def test_a_state_dict_goes_through_a_file(network: Network) -> None:
    insert_attention(network, "gpca", after=BLOCKS, example=X)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    torch.manual_seed(9)
    other = Network().eval()
    insert_attention(other, "gpca", after=BLOCKS, example=X)
    other.load_state_dict(torch.load(file, weights_only=True), strict=True)
    assert torch.equal(other(X), network(X))


@pytest.mark.parametrize("after", [BLOCKS, "blocks.?"], ids=["after a torch layer", "after a block"])
@pytest.mark.long
def test_fx_export_and_compile_agree(network: Network, after: str) -> None:
    insert_attention(network, "gpca", after=after, example=X)
    expected = network(X)
    traced = torch.fx.symbolic_trace(network)
    assert torch.equal(traced(X), expected)
    program = torch.export.export(network, (X,), dynamic_shapes=({0: torch.export.Dim("n", min=1, max=9)},))
    torch.testing.assert_close(program.module()(X), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(program.module()(X[:1]), network(X[:1]), rtol=0, atol=1e-6)
    torch._dynamo.reset()
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), expected, rtol=0, atol=1e-6)


def test_fx_sees_an_attention_of_the_traced_module_itself_from_outside(network: Network) -> None:
    """It traces the forward of what it is given without that module's hooks; a Sequential around it helps."""
    insert_attention(network, "constant", after="blocks.1", example=X, value=0.25)
    block, x = network.blocks[1], network.act(network.stem(X))
    traced = torch.fx.symbolic_trace(nn.Sequential(block))
    assert torch.equal(traced(x), block(x))
    torch.testing.assert_close(torch.fx.symbolic_trace(block)(x), 4 * block(x))  # what the docs warn of


@pytest.fixture
def one_rank(tmp_path: Path) -> Iterator[None]:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("one_rank")
def test_distributed_training_reaches_the_attention(network: Network) -> None:
    network.train()
    inserted = insert_attention(network, "se", after=BLOCKS, example=X)
    parallel = nn.parallel.DistributedDataParallel(network)
    parallel(X).square().sum().backward()
    for attention in inserted.attentions.values():
        assert all(p.grad is not None and p.grad.any() for p in attention.parameters())


def gradients_of_a_rank(rank: int, folder: str) -> None:
    """One of two processes: half of the batch, and the gradients after both have met."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    parallel = nn.parallel.DistributedDataParallel(attended_network())
    parallel(X[rank : rank + 1]).square().mean().backward()
    torch.save([p.grad for p in parallel.parameters()], f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def attended_network() -> Network:
    torch.manual_seed(0)
    network = Network().eval()  # so that batch norm does not mix the images
    insert_attention(network, "gpca", after=BLOCKS, example=X, reading="unit-gain")
    return network


@pytest.mark.long
def test_two_processes_have_the_gradients_of_one(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(gradients_of_a_rank, args=(str(tmp_path),), nprocs=2)
    network = attended_network()
    network(X).square().mean().backward()
    for rank in (0, 1):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for (name, parameter), gradient in zip(network.named_parameters(), found, strict=True):
            torch.testing.assert_close(gradient, parameter.grad, rtol=1e-4, atol=1e-6, msg=name)


def test_a_sequential_gets_it_in_its_last_child(network: Network) -> None:
    inserted = insert_attention(network, "se", after="blocks", example=X)
    assert inserted.names == ("blocks.1.attention",)
    assert len(network.blocks) == 2


def test_a_second_attention_follows_the_first(network: Network) -> None:
    first = insert_attention(network, "constant", after="stem", example=X, value=0.5)
    second = insert_attention(network, "constant", after="stem*", example=X, value=0.25)
    assert first.names == ("stem.attention",)
    assert second.names == ("stem.attention_2",)  # and nothing after the first attention itself
    assert torch.equal(network.stem(X), copy.deepcopy(network).stem(X))
    first.remove()
    second.remove()
    plain = network.stem(X)
    insert_attention(network, "constant", after="stem", example=X, value=0.5)
    insert_attention(network, "constant", after="stem", example=X, value=0.25)
    torch.testing.assert_close(network.stem(X), plain / 8)


class Pyramid(NamedTuple):
    fine: Tensor
    coarse: Tensor


class Levels(nn.Module):
    """Puts out two maps in a container of a kind."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind
        self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 6, 1, stride=2)

    def forward(self, x: Tensor) -> Any:
        return self.kind(self.a(x), self.b(x))


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (lambda a, b: {"p.3": a, "p.4": b}, ("p_3", "p_4")),
        (lambda a, b: OrderedDict([("0", a), ("1", b)]), ("0", "1")),
        (lambda a, b: [a, b], ("0", "1")),
        (lambda a, b: (a, b), ("0", "1")),
        (Pyramid, ("0", "1")),
    ],
    ids=["dict", "OrderedDict", "list", "tuple", "NamedTuple"],
)
def test_each_of_several_maps_gets_its_own(kind: Any, keys: tuple[str, str]) -> None:
    class Detector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = Levels(kind)

        def forward(self, x: Tensor) -> Any:
            return self.backbone(x)

    detector = Detector().eval()
    plain = detector(X)
    inserted = insert_attention(detector, "constant", after="backbone", example=X, value=0.5)
    assert inserted.names == tuple(f"backbone.attention.{key}" for key in keys)
    assert [a.channels for a in inserted.attentions.values()] == [4, 6]
    output = detector(X)
    assert type(output) is type(plain)
    if isinstance(plain, dict):
        assert list(output) == list(plain)
        plain, output = list(plain.values()), list(output.values())
    for attended, before in zip(output, plain, strict=True):
        torch.testing.assert_close(attended, before / 2)


def test_device_and_dtype_are_those_of_the_map(network: Network) -> None:
    network.double()
    inserted = insert_attention(network, "se", after=BLOCKS)  # the default example is made in its dtype
    parameters = [p for a in inserted.attentions.values() for p in a.parameters()]
    assert {p.dtype for p in parameters} == {torch.float64}


def test_options_reach_the_attention(network: Network) -> None:
    inserted = insert_attention(network, "gpca", after="down", example=X, variant="mha", group_size=4)
    (attention,) = inserted.attentions.values()
    assert isinstance(attention, GPCA)
    assert attention.variant == "mha"


class ChannelsLast(nn.Module):
    """Maps (N, H, W, C) between two convolutions, as Swin has them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.turned = nn.Conv2d(3, 6, 3, 2, 1), nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned: torch.Tensor = self.turned(self.first(x).permute(0, 2, 3, 1))
        return turned.permute(0, 3, 1, 2).mean(dim=(2, 3))


def test_channels_last_are_refused() -> None:
    model = ChannelsLast()
    with pytest.raises(
        ValueError, match=r"'turned' puts out the shape \(1, 112, 112, 6\), with the channels last"
    ):
        insert_attention(model, "se", after="turned")
    assert insert_attention(model, "se", after="first").names == ("first.attention",)


@pytest.mark.parametrize("ratio", ["4", 2.5, True])
def test_an_option_of_another_type_is_one_line(network: Network, ratio: object) -> None:
    with pytest.raises(TypeError, match=f"option ratio of attention 'se' must be int, got {ratio!r}"):
        insert_attention(network, "se", after="stem", example=X, ratio=ratio)


@pytest.mark.parametrize(
    ("name", "after", "message"),
    [
        ("se", "block.?.bn", "no module of Network matches 'block.*'; did you mean .*'blocks.0.bn'"),
        ("se", [BLOCKS, "xyzzy"], "no module of Network matches 'xyzzy'; see model.named_modules"),
        ("se", [], "`after` names no module"),
        ("se", 3, "`after` must be the name of a module, or several, got 3"),
        (GPCA, "stem", "after 'stem': an attention is named by a text such as 'gpca', got <class"),
        ("se", "fc", r"'fc' puts out the shape \(2, 5\), not a map \(N, C, H, W\) to put an attention"),
        ("se", "act", r"'act' runs more than once, on maps of different channels \(8 and 16\)"),
        ("bam", "pool", r"after 'pool': BAM cannot work on a map of 1x1; take another attention"),
        ("cbam", "pool", r"after 'pool': CBAM cannot work on a map of 1x1"),
        ("srp", "pool", r"after 'pool': SRP cannot work on a map of 1x1"),
        ("sre", "stem", "after 'stem': unknown attention 'sre'; did you mean se"),
    ],
)
def test_refused_in_one_line(network: Network, name: str, after: Any, message: str) -> None:
    expected, modules = network(X), list(network.named_modules())
    with pytest.raises(ValueError, match=message) as caught:
        insert_attention(network, name, after=after, example=X)
    assert "\n" not in str(caught.value)
    assert list(network.named_modules()) == modules
    assert not any(module._forward_hooks for module in network.modules())
    assert torch.equal(network(X), expected)


def test_a_network_for_other_images_wants_an_example() -> None:
    grey = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
    with pytest.raises(ValueError, match=r"^Sequential does not run on one image of 3x224x224; give an `exa"):
        insert_attention(grey, "se", after="0")
    assert insert_attention(grey, "se", after="0", example=torch.rand(1, 1, 8, 8)).names == ("0.attention",)
    with pytest.raises(RuntimeError, match="channels"):  # what was given is answered by torch's own words
        insert_attention(grey, "se", after="0", example=X)


def test_an_unknown_option_is_refused(network: Network) -> None:
    with pytest.raises(TypeError, match="attention 'se' has no option ration; it takes ratio"):
        insert_attention(network, "se", after="stem", example=X, ration=2)


class Odd(nn.Module):
    """A list of modules, one that runs in training only, and one that puts out text."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 3, 1)])
        self.aux = nn.Conv2d(3, 3, 1)
        self.text = Text()

    def forward(self, x: Tensor) -> Tensor:
        self.text()
        if self.training:
            x = self.aux(x)
        out: Tensor = self.layers[0](x)
        return out


class Text(nn.Module):
    def forward(self) -> list[str]:
        return ["no map"]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("layers", "'layers' is a ModuleList, which runs all its children.*name the child"),
        ("aux", "'aux' does not run in eval mode"),
        ("text", "'text' puts out a str, not a map"),
    ],
)
def test_modules_that_cannot_be_followed(after: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        insert_attention(Odd(), "se", after=after, example=X)


def test_the_examples_in_the_docstrings() -> None:
    for module in (gpca.insertion, gpca.cost):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0
