"""SE against timm's, SRP against its definition, and the draws that training can save."""

import copy

import pytest
import torch
from timm.layers import SqueezeExcite

from gpca import SE, SRP


@pytest.mark.parametrize("channels", [4, 20, 200])
def test_se_is_timms(channels: int) -> None:
    ours = SE(channels)
    timms = SqueezeExcite(channels, rd_channels=channels // 4, bias=False)
    with torch.no_grad():
        timms.fc1.weight.copy_(ours.fc1.weight[:, :, None, None])
        timms.fc2.weight.copy_(ours.fc2.weight[:, :, None, None])
    x = torch.randn(3, channels, 7, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours(x), timms(x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [SE, SRP])
@pytest.mark.parametrize(("channels", "expected"), [(200, 2 * 200 * 50), (13, 2 * 13 * 3), (3, 6), (1, 2)])
def test_number_of_parameters(kind: type[SE], channels: int, expected: int) -> None:
    assert sum(p.numel() for p in kind(channels).parameters()) == expected


def test_ratio_sets_the_hidden_width() -> None:
    assert SE(32, ratio=16).fc1.weight.shape == (2, 32)


@pytest.mark.parametrize("kind", [SE, SRP])
def test_gradcheck(kind: type[SE]) -> None:
    module = kind(4, ratio=1).double().eval()
    x = torch.randn(2, 4, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.autograd.gradcheck(module, x.requires_grad_())


def test_srp_at_test_is_se() -> None:
    srp = SRP(12).eval()
    se = SE(12)
    se.load_state_dict(srp.state_dict(), strict=True)
    x = torch.randn(2, 12, 6, 9)
    assert torch.equal(srp(x), se(x))


@pytest.mark.parametrize(
    ("height", "width", "share", "side"),
    [(14, 14, 0.5, 7), (6, 9, 0.5, 3), (1, 1, 0.5, 1), (2, 5, 0.1, 1), (4, 4, 1.0, 4)],
)
def test_srp_in_training_sees_one_square_per_image(height: int, width: int, share: float, side: int) -> None:
    """Every place of the square, and no other, must come up, and it must be the same for all channels."""
    module = SRP(3, side_share=share).train()
    module.seed(5)
    places = torch.arange(height * width, dtype=torch.float64).reshape(height, width)
    one_hot = torch.nn.functional.one_hot(places.long().flatten(), height * width).T.double()
    maps = one_hot.reshape(1, height * width, height, width).expand(300, -1, -1, -1)
    weights = module.squeeze(maps).reshape(300, height, width)  # what each place of the map counts

    seen = set()
    for weight in weights:
        rows, columns = torch.nonzero(weight, as_tuple=True)
        top, left = int(rows.min()), int(columns.min())
        seen.add((top, left))
        expected = torch.zeros(height, width, dtype=torch.float64)
        expected[top : top + side, left : left + side] = 1 / side**2
        torch.testing.assert_close(weight, expected)
    possible = {(t, left) for t in range(height - side + 1) for left in range(width - side + 1)}
    assert seen <= possible
    assert len(seen) > 0.8 * len(possible)


def test_srp_draws_can_be_saved_and_restored() -> None:
    module = SRP(8).train()
    x = torch.randn(16, 8, 10, 10)
    module(x)
    state = module.rng_state()
    assert state.dtype == torch.uint8
    assert state.device.type == "cpu"
    first = module(x)
    assert not torch.equal(module(x), first)
    module.set_rng_state(state)
    assert torch.equal(module(x), first)


def test_srp_seed_starts_anew_and_touches_no_other_generator() -> None:
    module = SRP(8).train()
    x = torch.randn(16, 8, 10, 10)
    outside = torch.get_rng_state()
    module.seed(3)
    first = module(x)
    module.seed(3)
    assert torch.equal(module(x), first)
    module.seed(4)
    assert not torch.equal(module(x), first)
    assert torch.equal(torch.get_rng_state(), outside)


def test_srp_follows_the_global_seed_without_drawing_from_it() -> None:
    x = torch.randn(16, 8, 10, 10)
    results = []
    for _ in range(2):
        torch.manual_seed(11)
        results.append(SRP(8).train()(x))
    assert torch.equal(results[0], results[1])


def test_srp_draws_once_per_batch_whatever_the_size_of_the_map() -> None:
    module = SRP(8).train()
    states = []
    for side in (4, 14):
        module.seed(0)
        module(torch.randn(5, 8, side, side))
        states.append(module.rng_state())
    assert torch.equal(states[0], states[1])


def test_srp_in_eval_draws_nothing() -> None:
    module = SRP(8).eval()
    before = module.rng_state()
    module(torch.randn(2, 8, 4, 4))
    assert torch.equal(module.rng_state(), before)


def test_a_copy_of_srp_continues_on_its_own() -> None:
    module = SRP(8).train()
    x = torch.randn(16, 8, 10, 10)
    copied = copy.deepcopy(module)
    first = module(x)
    assert torch.equal(copied(x), first)
    assert not any("generator" in key for key in module.state_dict())


@pytest.mark.long
def test_srp_can_be_compiled_in_training() -> None:
    module = SRP(8).train()
    x = torch.randn(4, 8, 6, 6)
    state = module.rng_state()
    expected = module(x)
    module.set_rng_state(state)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="aot_eager")
    torch.testing.assert_close(compiled(x), expected)


@pytest.mark.parametrize("ratio", [0, -1])
def test_bad_ratio(ratio: int) -> None:
    with pytest.raises(ValueError, match="ratio"):
        SE(8, ratio=ratio)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan")])
def test_bad_side_share(share: float) -> None:
    with pytest.raises(ValueError, match="side_share"):
        SRP(8, side_share=share)
