"""FlexAttention over a row of trees, for GPUs: only blocks in which something is seen are computed.

Whether a block of 128 x 128 places is seen as a whole, in part or not at all follows from the ends of
subtrees, on the host and without a mask of all places. transformers passes a block mask on to the attention
that the model names. So ``register`` makes transformers' ``sdpa`` take block masks too; everything else it
computes as before. Keys and values that heads share are not repeated.

The kernels are compiled once, for all lengths. **They were never run on a GPU here**: on CPUs torch computes
their forward pass without compiling, and it equals the dense masks'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from skillpress.models.policy.scoring import on_device

if TYPE_CHECKING:
    from skillpress.models.policy.tree_scoring import TreeRows

BLOCK = 128
"""Places of a block, in both directions."""
LEAST_HEAD = 16
"""The smallest head size that the compiled kernels support."""


def register() -> None:
    """Make transformers' sdpa take block masks."""
    AttentionInterface.register("sdpa", sdpa_or_trees)


def why_not(model: PreTrainedModel) -> str | None:
    """Why a model on a GPU cannot use it, in words; None if it can."""
    config, kernel = model.config.get_text_config(), model.config._attn_implementation
    if kernel != "sdpa":
        return f"its attention is {kernel!r}, but only sdpa can be replaced by FlexAttention"
    if not model._supports_flex_attn:
        return "transformers does not give its layers block masks"
    heads = int(config.num_attention_heads)
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    if size < LEAST_HEAD:
        return f"its heads have {size} numbers, fewer than the {LEAST_HEAD} that FlexAttention's kernels need"
    if model.training and any(getattr(config, name, 0) for name in ("attention_dropout", "attn_pdrop")):
        return "its attention has dropout, which FlexAttention does not support"
    return None


def sdpa_or_trees(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | BlockMask | None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """[rows, tokens, heads, size]; see transformers' AttentionInterface."""
    if not isinstance(attention_mask, BlockMask):
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **others
        )
        return found
    attend: Any = _compiled() if query.device.type == "cuda" else flex_attention
    output = attend(
        query, key, value, block_mask=attention_mask, scale=others.get("scaling"), enable_gqa=True
    )
    assert isinstance(output, torch.Tensor)
    return output.transpose(1, 2).contiguous(), None


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any]:
    """One function for all layers; ``dynamic``: for all lengths."""
    return torch.compile(flex_attention, dynamic=True)


def block_masks(
    rows: TreeRows, depth: torch.Tensor, ends: torch.Tensor, window: int | None
) -> list[BlockMask]:
    """The mask of all layers, or those of layers without and with a sliding window.

    Args:
        rows: one row of trees.
        depth: [width] of that row, on its device; ``ends`` likewise.
    """

    def seen(batch: Any, head: Any, query: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (other <= query) & (query < ends[other])

    masks = [_block_mask(_Blocks.of(rows.depth[0], rows.ends[0], None), seen, ends)]
    if window is None:
        return masks

    def near(batch: Any, head: Any, query: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return seen(batch, head, query, other) & (depth[query] - depth[other] < window)

    return [*masks, _block_mask(_Blocks.of(rows.depth[0], rows.ends[0], window), near, ends)]


class _Blocks:
    """Which blocks of keys each block of queries sees."""

    def __init__(self, some: NDArray[np.bool_], whole: NDArray[np.bool_]) -> None:
        self.some, self.whole = some, whole
        """[blocks, blocks] whether any place sees another, and whether every place sees every other."""

    @classmethod
    def of(cls, depth: NDArray[np.int64], ends: NDArray[np.int64], window: int | None) -> _Blocks:
        """Blocks from the edges of subtrees alone. With a window, some blocks are listed that see nothing."""
        blocks = np.arange(len(ends) // BLOCK)
        first, after = blocks * BLOCK, (blocks + 1) * BLOCK
        by_block = ends.reshape(-1, BLOCK)
        # Columns are keys: a subtree that ends behind the first query of a block contains this query.
        before = blocks < blocks[:, None]
        some = before & (by_block.max(1) > first[:, None])
        whole = before & (by_block.min(1) >= after[:, None])
        if window is not None:
            deep = depth.reshape(-1, BLOCK)
            some &= deep.min(1)[:, None] - deep.max(1) < window
            whole &= some & (deep.max(1)[:, None] - deep.min(1) < window)
        return cls(some | np.eye(len(blocks), dtype=np.bool_), whole)


def _block_mask(blocks: _Blocks, seen: Callable[..., torch.Tensor], like: torch.Tensor) -> BlockMask:
    """FlexAttention's form: the number and the columns of partly and of wholly seen blocks, per row."""
    (partly, partly_at), (wholly, wholly_at) = (
        [
            on_device(each[None, None].astype(np.int32), like.device)
            for each in (kind.sum(1), np.argsort(~kind, axis=1, kind="stable"))
        ]
        for kind in (blocks.some & ~blocks.whole, blocks.whole)
    )
    return BlockMask.from_kv_blocks(
        partly,
        partly_at,
        wholly,
        wholly_at,
        BLOCK_SIZE=BLOCK,
        mask_mod=seen,
        seq_lengths=(len(like), len(like)),
    )
