"""Attention of one new token per row for models in which several query heads share keys and values.

With a mask, transformers' sdpa repeats keys and values for every query head of a group, which copies the
whole cache several times for every token. Instead, the queries of a group can take the dimension of several
tokens' queries, since all of them see the same columns. Then nothing is copied. Passes over several tokens
compute attention as the policy does, with sdpa or in blocks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from skillpress.models.policy.attention import BLOCKED
from skillpress.models.policy.blocked_attention import blocked_attention

NAME = "sdpa_grouped"
"""The name of this attention in transformers. Outside of decoding it is sdpa itself."""
BLOCKS = "blocked_grouped"
"""The name of the form that computes attention in blocks outside of decoding."""


def group_queries(model: PreTrainedModel) -> None:
    """Make this model decode with grouped attention, if it uses sdpa or blocks and its query heads share keys
    and values."""
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    shared = getattr(config, "num_key_value_heads", None) or heads
    name = {"sdpa": NAME, BLOCKED: BLOCKS}.get(str(config._attn_implementation))
    if name is not None and shared < heads:
        AttentionInterface.register(name, grouped_attention if name == NAME else grouped_or_blocked)
        AttentionMaskInterface.register(name, sdpa_mask)
        model.set_attn_implementation(name)


def grouped_or_blocked(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """[rows, tokens, heads, size]: grouped for a single token, blocked for more."""
    compute = grouped_attention if query.shape[2] == 1 else blocked_attention
    return compute(module, query, key, value, attention_mask, **others)


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """[rows, tokens, heads, size]; see transformers' AttentionInterface."""
    rows, heads, tokens, size = query.shape
    shared = key.shape[1]
    if tokens > 1 or shared == heads or others.get("position_bias") is not None:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return found
    queries = query.reshape(rows, shared, heads // shared, size)
    mask = attention_mask
    if mask is not None:
        mask = mask.expand(-1, -1, heads // shared, -1)
    output = scaled_dot_product_attention(queries, key, value, attn_mask=mask, scale=scaling)
    return output.reshape(rows, 1, heads, value.shape[-1]), None
