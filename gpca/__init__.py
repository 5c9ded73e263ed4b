"""Attention for feature maps: GPCA and its variants, the attentions it is compared with, and controls.

from gpca import GPCA, build_attention
attention = GPCA(channels=200)          # or build_attention("gpca", channels=200)
y = attention(x)                        # (N, 200, H, W) -> the same shape
attention.mask                          # (N, 200), detached

from gpca import insert_attention       # into any network, in one line
insert_attention(network, "gpca", after="layer?.?.bn3")
"""

from gpca.bam import BAM
from gpca.base import Attention, ChannelAttention, SpatialAttention
from gpca.cbam import CBAM, CBAMChannel
from gpca.context import GCNet, NLNet
from gpca.controls import Constant, Identity
from gpca.cost import multiply_adds
from gpca.eca import ECA
from gpca.gct import GCT
from gpca.gpca import GPCA, Posterior
from gpca.insertion import Insertion, insert_attention
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
    "BAM",
    "CBAM",
    "ECA",
    "GCT",
    "GPCA",
    "READINGS",
    "SE",
    "SRP",
    "Attention",
    "CBAMChannel",
    "ChannelAttention",
    "Constant",
    "GCNet",
    "Identity",
    "Insertion",
    "NLNet",
    "Posterior",
    "Reading",
    "SpatialAttention",
    "attention_class",
    "attention_options",
    "available_attentions",
    "build_attention",
    "insert_attention",
    "multiply_adds",
    "register_attention",
]
