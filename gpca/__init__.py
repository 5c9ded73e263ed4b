"""Attention for feature maps: GPCA and its variants, SE, SRP, and the controls to compare them with.

from gpca import GPCA, build_attention
attention = GPCA(channels=200)          # or build_attention("gpca", channels=200)
y = attention(x)                        # (N, 200, H, W) -> the same shape
attention.mask                          # (N, 200), detached
"""

from gpca.base import Attention, ChannelAttention, SpatialAttention
from gpca.controls import Constant, Identity
from gpca.gpca import GPCA, Posterior
from gpca.readings import READINGS, Reading
from gpca.registry import (
    attention_class,
    attention_options,
    available_attentions,
    build_attention,
    register_attention,
)
from gpca.squeeze import SE, SRP

__all__ = [
    "GPCA",
    "READINGS",
    "SE",
    "SRP",
    "Attention",
    "ChannelAttention",
    "Constant",
    "Identity",
    "Posterior",
    "Reading",
    "SpatialAttention",
    "attention_class",
    "attention_options",
    "available_attentions",
    "build_attention",
    "register_attention",
]
