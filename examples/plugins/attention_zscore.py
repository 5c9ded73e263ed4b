"""A channel attention: one class that says how the mask comes from the maps."""

from torch import Tensor

from gpca import ChannelAttention, register_attention


@register_attention("zscore")
class ZScore(ChannelAttention):
    """Channels that are stronger than the others count more: v = sigmoid((z - mean z) / std z), z = GAP x."""

    def compute_mask(self, x: Tensor) -> Tensor:
        z = x.mean(dim=(2, 3))
        centred = z - z.mean(dim=1, keepdim=True)
        return (centred / (centred.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()).sigmoid()
