"""Attention rollout, for transformers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from wsol.errors import ConfigError
from wsol.models.classifier.features import Layout
from wsol.models.classifier.methods.method import MapMethod
from wsol.models.classifier.network import BorrowedClassifier, Seen
from wsol.registry import MAP_METHODS


class AttentionWatch(TorchFunctionMode):
    """Keeps the attention (N, L, L), the mean over the heads, of every block that runs while it is open.

    It sees the calls of `scaled_dot_product_attention` and of softmax over (N, heads, L, L), so that the
    model needs no hook and no change.
    """

    def __init__(self) -> None:
        super().__init__()
        self.attentions: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is multi_head_attention_forward:  # what it calls inside is not seen here, but it can tell
            told = {**kwargs, "need_weights": True, "average_attn_weights": True}
            result, attention = func(*args, **told)
            assert attention is not None
            self.attentions.append(attention.detach())
            return result, attention if kwargs.get("need_weights", True) else None
        result = func(*args, **kwargs)
        if func is scaled_dot_product_attention:
            self.attentions.append(_attention(*args, **kwargs).mean(dim=1))
        elif getattr(func, "__name__", "") == "softmax" and _is_square(result):
            self.attentions.append(result.detach().mean(dim=1))
        return result


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q k^T / sqrt(d) + mask), which the fused function does not give out."""
    products = query.detach() @ key.detach().transpose(-2, -1) * (scale or query.shape[-1] ** -0.5)
    if attn_mask is not None:
        added = attn_mask.dtype != torch.bool
        products = products + attn_mask if added else products.masked_fill(~attn_mask, -torch.inf)
    return products.softmax(dim=-1)


def _is_square(result: Any) -> bool:
    return isinstance(result, Tensor) and result.ndim == 4 and result.shape[2] == result.shape[3] > 1


def _has_class_token(model: nn.Module) -> bool:
    """Whether the first token before the patches is of the whole image, and no register.

    timm's networks without a class token say so: their `cls_token` is None.
    """
    return all(getattr(module, "cls_token", module) is not None for module in model.modules())


@MAP_METHODS.register(
    "rollout", "a transformer's attention through all blocks, for no class (Abnar et al., 2020)"
)
class AttentionRollout(MapMethod):
    """R = B_n ... B_1,  B = (A + 1) / 2,  A: a block's attention (L, L), the mean over its heads.

    The map is the row of the class token over the patches; where there is no such token, the mean of the
    rows of the patches, as the network takes the mean of the patches. It is the same for every class.

    Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
    """

    def watch(self) -> AbstractContextManager[object]:
        return AttentionWatch()

    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        attentions = seen.watched.attentions
        layout = seen.network.layout
        rolled = torch.eye(attentions[0].shape[-1]).to(attentions[0])
        for attention in attentions:
            rolled = (attention @ rolled + rolled) / 2  # rows of A sum to 1, and so do those of B
        by_class_token = layout.prefix > 0 and _has_class_token(seen.network.model)
        row = rolled[:, 0] if by_class_token else rolled[:, layout.prefix :].mean(dim=1)
        one = layout.maps(row[..., None])
        return one.expand(-1, labels.shape[1], -1, -1)

    def check(self, network: BorrowedClassifier, x: Tensor) -> None:
        with AttentionWatch() as watched:
            network.see(x, gradients=False)
        attentions = watched.attentions
        shapes = {tuple(a.shape) for a in attentions}
        tokens = [Layout.of(a.transpose(1, 2)[:, :, :1], network.layout.prefix) for a in attentions]
        if len(shapes) != 1 or len(attentions[0]) != 1 or tokens[0] != network.layout:
            raise ConfigError(
                "rollout: needs a transformer whose blocks attend from every patch to every patch; "
                f"this classifier has {len(shapes)} sizes of attention in {len(attentions)} blocks"
            )
