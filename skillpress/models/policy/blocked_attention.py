"""Attention in blocks of queries, for bfloat16 on CPUs: ``policy.attention: blocked``.

Much of an update of SmolLM2 on a CPU was torch's attention kernel. In bfloat16 it is slower than matrix
products are, and computes masked places too. Here a block of queries takes two matrix products and a
softmax over the columns that it sees:

    S = scale Q K^T + mask      P = softmax(S)      O = P V

Products are bfloat16, as in transformers' written-out attention, and the softmax is float32. Columns that no
query of a block sees are left out, about a third where prompts are followed by long continuations. Query
heads that share keys and values are rows of one product, so nothing is repeated. The backward pass computes P
again, so a layer keeps queries, keys and values alone.

A block has about 2^20 scores, which stay in a core's cache. In float32 torch's kernel is as fast, so it
computes other types, and everything on GPUs. It also computes single tokens, since products of a cache with
spare room would copy it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.nn.functional import softmax
from torch.utils.weak import WeakIdKeyDictionary
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "blocked"
"""The name of this attention in transformers."""
SCORES = 1 << 20
"""Scores of a block of queries, over all heads of one sequence."""
HIDDEN = -1e30
"""Added to the scores of hidden places. Rows that see nothing are padding and get finite numbers."""


def register() -> None:
    """Make transformers know this attention, with the masks of its own sdpa."""
    AttentionInterface.register(NAME, blocked_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def blocked_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """[rows, tokens, heads, size]; see transformers' AttentionInterface."""
    tokens, columns = query.shape[2], key.shape[2]
    known = tokens == columns if attention_mask is None else attention_mask.dtype == torch.bool
    if (
        query.dtype != torch.bfloat16
        or query.device.type != "cpu"
        or tokens == 1
        or not known
        or others.get("dropout")
        or others.get("position_bias") is not None
    ):
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return found
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return attend(query, key, value, attention_mask, scale).transpose(1, 2).contiguous(), None


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scale: float
) -> torch.Tensor:
    """[sequences, heads, tokens, size] the attention of ``query``, of any type.

    Args:
        query: [sequences, heads, tokens, size].
        key: [sequences, shared heads, columns, size], like ``value``.
        mask: [sequences or 1, 1, tokens, columns], True where a query sees; None if each token sees itself
            and those before it, and there are no further columns.
        scale: the factor of the scores.
    """
    rows = max(1, SCORES // (query.shape[1] * key.shape[2]))
    if mask is None:
        plans = [_causal(query.shape[2], rows)] * len(query)
    else:
        plans = _plans(mask, rows)
        plans = plans * (len(query) // len(plans))
    output: torch.Tensor = _Blocked.apply(query, key, value, scale, plans)  # type: ignore[no-untyped-call]
    return output


@dataclass(frozen=True)
class _Block:
    """A block of queries of one sequence, and the columns that any of them sees."""

    queries: slice
    columns: slice
    hidden: torch.Tensor | None
    """[queries, last columns] what is added to the scores of the last columns; None if every query sees them
    all."""


_KNOWN: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""A mask to the plans of its sequences and their rows: all layers of a pass get the same mask."""


def _plans(mask: torch.Tensor, rows: int) -> list[list[_Block]]:
    """The blocks of each sequence of a mask [sequences, 1, queries, columns], True where a query sees."""
    known: tuple[int, list[list[_Block]]] | None = _KNOWN.get(mask)
    if known is None or known[0] != rows:
        known = rows, [_plan(one, rows) for one in mask[:, 0]]
        _KNOWN[mask] = known
    return known[1]


@lru_cache(maxsize=8)
def _causal(tokens: int, rows: int) -> list[_Block]:
    """The blocks of a sequence in which each token sees itself and those before it."""
    return _plan(torch.ones(tokens, tokens, dtype=torch.bool).tril(), rows)


def _plan(visible: torch.Tensor, rows: int) -> list[_Block]:
    """The blocks of a sequence.

    Args:
        visible: [queries, columns].
        rows: queries of a block.
    """
    blocks = []
    for first in range(0, len(visible), rows):
        part = visible[first : first + rows]
        seen = part.any(0).nonzero()
        # A block of padding sees no column; a product needs one.
        begin, end = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 1)
        partly = (~part[:, begin:end].all(0)).nonzero()
        hidden = None
        if len(partly):
            # The columns before the first hidden one need no addition.
            hides = ~part[:, begin + int(partly[0]) : end]
            hidden = torch.zeros(hides.shape, device=part.device).masked_fill_(hides, HIDDEN)
        blocks.append(_Block(slice(first, first + len(part)), slice(begin, end), hidden))
    return blocks


class _Blocked(torch.autograd.Function):
    """The forward and the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        plans: list[list[_Block]],
    ) -> torch.Tensor:
        """[sequences, heads, tokens, size]."""
        ctx.save_for_backward(query, key, value)
        ctx.scale, ctx.plans = scale, plans
        output = torch.empty(*query.shape[:3], value.shape[-1], dtype=query.dtype, device=query.device)
        for row, plan in enumerate(plans):
            queries, outputs = _grouped(query[row], key.shape[1]), _grouped(output[row], key.shape[1])
            for block in plan:
                weights = _weights(queries[:, :, block.queries], key[row], block, scale).to(query.dtype)
                found = torch.bmm(weights, value[row, :, block.columns])
                outputs[:, :, block.queries] = found.view(*outputs[:, :, block.queries].shape)
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value = ctx.saved_tensors
        of_query = torch.empty_like(query)
        # Blocks add to the same columns, and a sum in bfloat16 would round at every block.
        of_key, of_value = (torch.zeros_like(each, dtype=torch.float32) for each in (key, value))
        for row, plan in enumerate(ctx.plans):
            queries, gradients, found = (
                _grouped(each[row], key.shape[1]) for each in (query, gradient, of_query)
            )
            for block in plan:
                some, keys = queries[:, :, block.queries], key[row, :, block.columns]
                above = _rows(gradients[:, :, block.queries])
                weights = _weights(some, key[row], block, ctx.scale)
                of_value[row, :, block.columns] += torch.bmm(weights.to(query.dtype).transpose(1, 2), above)
                of_weights = torch.bmm(above, value[row, :, block.columns].transpose(1, 2)).float()
                of_scores = _softmax_backward(of_weights, weights).to(query.dtype)
                of_some = torch.bmm(of_scores, keys).mul_(ctx.scale)
                found[:, :, block.queries] = of_some.view(*some.shape)
                of_key[row, :, block.columns] += torch.bmm(of_scores.transpose(1, 2), _rows(some)).mul_(
                    ctx.scale
                )
        return of_query, of_key.to(key.dtype), of_value.to(value.dtype), None, None


def _grouped(heads: torch.Tensor, shared: int) -> torch.Tensor:
    """[shared, group, tokens, size] from [heads, tokens, size], as a view: the heads that share keys."""
    return heads.view(shared, -1, *heads.shape[1:])


def _rows(part: torch.Tensor) -> torch.Tensor:
    """[shared, group x tokens, size] from [shared, group, tokens, size]."""
    return part.reshape(len(part), -1, part.shape[-1])


def _weights(some: torch.Tensor, keys: torch.Tensor, block: _Block, scale: float) -> torch.Tensor:
    """[shared, group x queries, columns] softmax of the scores of a block, in float32.

    Args:
        some: [shared, group, queries, size].
        keys: [shared, all columns, size].
    """
    scores = torch.bmm(_rows(some), keys[:, block.columns].transpose(1, 2)).float().mul_(scale)
    if block.hidden is not None:
        tokens, last = block.hidden.shape
        scores.view(len(some), -1, tokens, scores.shape[-1])[..., -last:] += block.hidden
    return softmax(scores, dim=-1)


def _softmax_backward(gradient: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The gradient of the scores from that of their softmax."""
    found: torch.Tensor = torch.ops.aten._softmax_backward_data(gradient, weights, -1, torch.float32)
    return found
