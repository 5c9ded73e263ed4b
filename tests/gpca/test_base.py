"""The kinds of attention that one may write: any, of channels, of places; and what is refused."""

import pytest
import torch
from torch import Tensor

from gpca import Attention, ChannelAttention, SpatialAttention, build_attention, register_attention
from gpca.registry import _ATTENTIONS

X = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _forgotten_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpca.registry._ATTENTIONS", dict(_ATTENTIONS))


class Brightest(SpatialAttention):
    """Weigh each place by its mean over the channels."""

    def compute_map(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


class Kept(SpatialAttention):
    """The same, with the axis of the channels kept."""

    def compute_map(self, x: Tensor) -> Tensor:
        return x.mean(dim=1, keepdim=True)


@pytest.mark.parametrize("kind", [Brightest, Kept])
def test_a_spatial_attention_keeps_its_map(kind: type[SpatialAttention]) -> None:
    attention = kind(3)
    assert attention.map is None
    y = attention(X.clone().requires_grad_())
    assert attention.map is not None
    assert not attention.map.requires_grad
    torch.testing.assert_close(attention.map, X.mean(1))
    torch.testing.assert_close(y, X * X.mean(1, keepdim=True))
    assert attention(X.bfloat16()).dtype == torch.bfloat16
    assert attention.map.dtype == torch.float32
    assert attention.state_dict() == {}


def test_a_spatial_attention_is_exported_without_being_changed() -> None:
    attention = Kept(3).eval()
    program = torch.export.export(attention, (X,), strict=True)
    assert attention.map is None
    torch.testing.assert_close(program.module()(X), attention(X))


@pytest.mark.parametrize("shape", [(2,), (2, 1), (3, 2), (2, 3, 1, 1), (1, 3)])
def test_a_mask_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    class Wrong(ChannelAttention):
        """Returns a mask of the wrong shape."""

        def compute_mask(self, x: Tensor) -> Tensor:
            return torch.ones(shape)

    with pytest.raises(
        ValueError, match=r"Wrong\.compute_mask must return the shape \(2, 3\) for this x, got"
    ):
        Wrong(3)(X)


@pytest.mark.parametrize("shape", [(2,), (4, 5), (2, 3, 4, 5), (2, 5, 4), (1, 4, 5)])
def test_a_map_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    class Wrong(SpatialAttention):
        """Returns a map of the wrong shape."""

        def compute_map(self, x: Tensor) -> Tensor:
            return torch.ones(shape)

    with pytest.raises(ValueError, match=r"Wrong\.compute_map must return the shape \(2, 4, 5\)"):
        Wrong(3)(X)


def test_any_attention_can_be_registered() -> None:
    @register_attention("double")
    class Double(Attention):
        """Twice of everything."""

        def __init__(self, channels: int, times: float = 2.0) -> None:
            super().__init__(channels)
            self.times = torch.nn.Parameter(torch.tensor(times))

        def forward(self, x: Tensor) -> Tensor:
            self.check_input(x)
            return x * self.times

    built = build_attention("double", 3, times=3.0, dtype=torch.float64)
    assert torch.equal(built(X.double()), 3 * X.double())
    with pytest.raises(ValueError, match="must have 3 channels"):
        built(X[:, :2])


def test_what_cannot_be_registered() -> None:
    with pytest.raises(TypeError, match=r"'plain' must be a subclass of gpca\.Attention"):
        register_attention("plain")(torch.nn.Identity)  # type: ignore[type-var]

    class Empty(ChannelAttention):
        """Lacks its method."""

    with pytest.raises(ValueError, match="'empty' lacks the method compute_mask"):
        register_attention("empty")(Empty)

    class Silent(Brightest):
        pass

    with pytest.raises(ValueError, match="'silent' needs a docstring"):
        register_attention("silent")(Silent)
