"""Scoring in one pass over trees of prompts and responses (``prefix_tree.py``), without a cache.

The cached scorer makes two passes through all layers and copies keys and values of shared prompts. Here each
token goes through the layers once, in a single pass, and attention reads a shared prompt where it is. This
also works with gradient checkpointing.

Attention gets a mask: a token sees itself and its ancestors; with a sliding window, only those at most a
window away in depth. There are two forms:

    dense     trees are packed into rows as wide as the widest tree, with a Boolean mask per row for
              transformers' own kernels and for ``blocked_attention.py``; a sequence joins a tree
              only if more than half of its prompt is there, so rows stay narrow
    blocks    all trees are one row, and FlexAttention skips the blocks of its mask in which nothing is seen
              (``tree_attention.py``); memory grows with the tokens and not with their square
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention.flex_attention import BlockMask
from transformers import PretrainedConfig, PreTrainedModel

from skillpress.core.chains import Pairs
from skillpress.models.policy import tree_attention
from skillpress.models.policy.logits import sliding_window
from skillpress.models.policy.packing import first_fit
from skillpress.models.policy.prefix_tree import PrefixTree
from skillpress.models.policy.scoring import Responses, Scorer, on_device

Mask = torch.Tensor | BlockMask
LEAST_SHARED = 0.5
"""Dense rows: a sequence joins a tree if more than this part of its first prompt is there."""


class TreeScorer(Scorer):
    """Computes every token of the trees once."""

    name: ClassVar[str] = "tree"
    shares_prompts: ClassVar[bool] = True

    def __init__(self, model: PreTrainedModel, blocks: bool = False) -> None:
        """``blocks`` computes attention by FlexAttention; otherwise by the model's own kernel."""
        super().__init__(model)
        self._blocks = blocks
        if blocks:
            tree_attention.register()

    def hidden(self, responses: Responses) -> torch.Tensor:
        rows = TreeRows.of(responses.pairs, None if self._blocks else responses.size)
        device = responses.targets.device
        tokens, depth, ends = on_device(np.stack([rows.tokens, rows.depth, rows.ends]), device)
        output = self.model.base_model(
            input_ids=tokens,
            position_ids=depth,
            attention_mask=_by_layer(self._masks(rows, depth, ends), self.model.config),
            use_cache=False,
        )
        hidden: torch.Tensor = output.last_hidden_state.flatten(0, 1)
        return hidden[on_device(rows.predicting, device)]

    def _masks(self, rows: TreeRows, depth: torch.Tensor, ends: torch.Tensor) -> Sequence[Mask]:
        """The mask of all layers, or those of layers without and with a sliding window."""
        window = sliding_window(self.model.config)
        if self._blocks:
            return tree_attention.block_masks(rows, depth[0], ends[0], window)
        masks = dense_masks(depth, ends, window)
        if self.model.config._attn_implementation == "eager":
            return [_added(mask, self.model.dtype) for mask in masks]
        return masks


@dataclass(frozen=True)
class TreeRows:
    """Trees in rows of one width."""

    tokens: NDArray[np.int64]
    """[rows, width] token ids; 0 at empty places."""
    depth: NDArray[np.int64]
    """[rows, width] position of each token in its sequence; 0 at empty places."""
    ends: NDArray[np.int64]
    """[rows, width] 1 + the last place of each token's subtree; an empty place is a tree of its own."""
    predicting: NDArray[np.int64]
    """[response tokens] place that predicts each, counted through all rows."""

    @classmethod
    def of(cls, pairs: Pairs, most: int | None) -> TreeRows:
        """Pack trees.

        Args:
            most: the most places of all rows, at least as many as there are different prompts' and
                continuations' tokens; None puts all trees into one row, as wide as some blocks.
        """
        tree = PrefixTree.of(pairs, 0.0 if most is None else LEAST_SHARED)
        sizes = np.diff(tree.roots, append=len(tree.tokens))
        if most is None:
            width = -(-len(tree.tokens) // tree_attention.BLOCK) * tree_attention.BLOCK
            row, start = np.zeros(len(sizes), np.int64), tree.roots
        else:
            width, row, start = _narrow(sizes.tolist(), most)
        # What is added to a node's number to get its place, in its row and through all rows.
        shift = np.repeat(start - tree.roots, sizes)
        place = np.arange(len(tree.tokens)) + shift + np.repeat(row * width, sizes)
        shape = int(row.max()) + 1, width
        tokens, depth = (np.zeros(shape, np.int64) for _ in range(2))
        ends = np.tile(np.arange(1, width + 1), (shape[0], 1))
        tokens.flat[place], depth.flat[place], ends.flat[place] = tree.tokens, tree.depth, tree.ends + shift
        return cls(tokens, depth, ends, place[tree.predicting])


def _narrow(sizes: Sequence[int], most: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """The width of rows for trees of these sizes, and the row of each tree and its beginning there: as narrow
    as the number of places allows, since masks grow with the square of the width."""
    width, total = max(sizes), sum(sizes)
    while True:
        row, start = (np.array(each, np.int64) for each in first_fit(sizes, width))
        if (int(row.max()) + 1) * width <= most or width == total:
            return width, row, start
        width = min(total, width + width // 4 + 1)


def dense_masks(depth: torch.Tensor, ends: torch.Tensor, window: int | None) -> list[torch.Tensor]:
    """[rows, 1, width, width] True where a token sees another: everywhere, and within a sliding window."""
    place = torch.arange(ends.shape[1], device=ends.device)
    seen = (place <= place[:, None]) & (place[:, None] < ends[:, None, None])
    if window is None:
        return [seen]
    return [seen, seen & (depth[:, None, :, None] - depth[:, None, None] < window)]


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The mask in the form of transformers' eager attention."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(
        ~mask, torch.finfo(dtype).min
    )


def _by_layer(masks: Sequence[Mask], config: PretrainedConfig) -> Any:
    """One mask if all layers are alike, otherwise a mask for each kind of layer."""
    if len(masks) == 1 or getattr(config.get_text_config(), "layer_types", None) is None:
        return masks[-1]
    return dict(zip(("full_attention", "sliding_attention"), masks, strict=True))


def why_not(model: PreTrainedModel, blocks: bool) -> str | None:
    """Why trees would be wrong for this model, in words; None if they are correct."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ())
    if other := kinds - {"full_attention", "sliding_attention"}:
        return f"its layers include {', '.join(sorted(other))}, which have no mask over trees"
    if blocks:
        return tree_attention.why_not(model)
    return None
