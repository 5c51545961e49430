"""Keys and values of the rows that are decoded together, with room for the new tokens.

transformers' own cache grows by copying: every token copies all keys and values of all rows, and so does
every row that stops. Here a layer's memory is allocated once, for the longest prompt and the longest
response. A token is written in place, and when a row stops, the last row takes its place. If prompts were
prefilled in several passes, their keys and values are merged here, so that each row's newest token is in the
same column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from skillpress.models.engines.local.stacks import Stacks, joined, like, move, pieces_of

MOVED_IN_ORDER = 1 << 26
"""Caches up to this many bytes keep their rows in order, because copying is cheap; results stay equal to the
bit."""


class DecodingCache(Cache):
    """Rows of keys and values, [rows, heads, columns, head size] per layer."""

    stacks: Stacks = ()
    """The memory of the layers that grow."""
    device: torch.device

    @classmethod
    def merged(
        cls, prefilled: Sequence[DynamicCache], rows: Sequence[torch.Tensor], columns: int, room: int
    ) -> DecodingCache:
        """The chosen rows of several caches, one cache after another; the caches are consumed.

        Args:
            rows: for each cache the rows to take. A row may be named several times.
            columns: number of columns of the widest cache; the others are padded on the left.
            room: number of new tokens per row.
        """
        parts: list[list[Any]] = [
            list(same) for same in zip(*(cache.layers for cache in prefilled), strict=True)
        ]
        growing = [same for same in parts if type(same[0]) is DynamicLayer]
        stacks, grown = _grown(growing, rows, columns, room) if growing else ((), [])
        layers = iter(grown)
        cache = cls(
            layers=[
                next(layers) if type(same[0]) is DynamicLayer else _merged_layer(same, rows, columns)
                for same in parts
            ]
        )
        cache.stacks, cache.device = stacks, rows[0].device
        return cache

    def keep(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep these rows (ascending); return them in their new order."""
        layers: list[Any] = self.layers
        growing = [layer for layer in layers if isinstance(layer, _GrowingLayer)]
        used = growing[0].rows if growing else 0
        in_order = sum(stack[:, :used].nbytes for stack in self.stacks) <= MOVED_IN_ORDER
        order = rows if in_order else last_into_holes(rows)
        index = torch.from_numpy(order).to(self.device)
        if in_order:
            self.stacks = tuple(stack.index_select(1, index) for stack in self.stacks)
        elif growing:
            move(self.stacks, order, growing[0].columns)
        memory = pieces_of(self.stacks)
        for place, layer in enumerate(growing):
            layer.use(memory[2 * place], memory[2 * place + 1], len(order))
        for layer in layers:
            if not isinstance(layer, _GrowingLayer):
                layer.batch_select_indices(index)
        return order


def can_merge(config: PretrainedConfig) -> bool:
    """Whether caches of several passes can be merged: attention layers can, other states cannot."""
    kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    return kinds <= {DynamicLayer, DynamicSlidingWindowLayer}


def can_resume(config: PretrainedConfig) -> bool:
    """Whether a row can be taken out and used later: no sliding window, which could count padding."""
    return {type(layer) for layer in DynamicCache(config=config).layers} == {DynamicLayer}


def resumed_cache(
    sequences: Sequence[Stacks], config: PretrainedConfig
) -> tuple[DynamicCache, NDArray[np.bool_]]:
    """A cache in which each row holds one sequence's keys and values, padded on the left, and a mask [rows,
    columns] that is True for columns that are not padding."""
    cache = DynamicCache(config=config)
    stacks, seen = joined(sequences)
    own_layers: list[Any] = cache.layers
    memory = iter(pieces_of(stacks))
    for layer in own_layers:
        keys, values = next(memory), next(memory)
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
    return cache, seen


def bytes_per_token(config: PretrainedConfig, itemsize: int) -> int:
    """Number of bytes that the keys and values of one token take in all layers."""
    config = config.get_text_config()
    heads = int(config.num_attention_heads)
    shared = int(getattr(config, "num_key_value_heads", None) or heads)
    size = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    return 2 * int(config.num_hidden_layers) * shared * size * itemsize


class _GrowingLayer(DynamicLayer):
    """A layer that writes new tokens into memory that is already allocated."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, columns: int) -> None:
        """Use this memory, [rows, heads, columns and room, size], of which ``columns`` are filled."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.columns = columns
        self.use(keys, values, len(keys))

    def use(self, keys: torch.Tensor, values: torch.Tensor, rows: int) -> None:
        """Use the first rows of this memory from now on."""
        self.rows = rows
        self._memory = (keys[:rows], values[:rows])
        self._show()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write new columns; return all keys and values up to them."""
        for memory, new in zip(self._memory, (key_states, value_states), strict=True):
            memory.narrow(2, self.columns, new.shape[2]).copy_(new)
        self.columns += key_states.shape[2]
        return self._show()

    def _show(self) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = (memory.narrow(2, 0, self.columns) for memory in self._memory)
        self.keys, self.values = keys, values
        return keys, values


def _grown(
    layers: Sequence[Sequence[Any]], rows: Sequence[torch.Tensor], columns: int, room: int
) -> tuple[Stacks, list[_GrowingLayer]]:
    """Merge layers that grow, given each layer's parts, which are consumed; return their memory too."""
    examples = [tensor for first, *_ in layers for tensor in (first.keys, first.values)]
    stacks = like(examples, sum(map(len, rows)), columns + room)
    examples.clear()
    memory, found = iter(pieces_of(stacks)), []
    for parts in layers:
        keys, values = next(memory), next(memory)
        copy_right_aligned(keys, [part.keys for part in parts], rows, columns)
        copy_right_aligned(values, [part.values for part in parts], rows, columns)
        found.append(_GrowingLayer(keys, values, columns))
        for part in parts:
            part.keys = part.values = None  # frees their memory for the next layer
    return stacks, found


def _merged_layer(parts: Sequence[Any], rows: Sequence[torch.Tensor], columns: int) -> Any:
    """Merge one layer that does not grow. A layer type that cannot be merged comes from a single cache."""
    (first, *_), kind = parts, type(parts[0])
    if kind is DynamicSlidingWindowLayer:
        # As in transformers, which keeps one column less than the window: the new token is the last.
        kept = min(columns, first.sliding_window - 1)
        layer = DynamicSlidingWindowLayer(sliding_window=first.sliding_window)
        layer.lazy_initialization(first.keys, first.values)
        layer.keys = _right_aligned([part.keys for part in parts], rows, kept)
        layer.values = _right_aligned([part.values for part in parts], rows, kept)
        layer.cumulative_length = columns
        for part in parts:
            part.keys = part.values = None
        return layer
    assert len(parts) == 1
    first.batch_select_indices(rows[0])
    return first


def _right_aligned(parts: Sequence[torch.Tensor], rows: Sequence[torch.Tensor], columns: int) -> torch.Tensor:
    """[all rows, heads, columns, size]: the rows of all parts, each ending at the last column."""
    _, heads, _, size = parts[0].shape
    merged = parts[0].new_empty(sum(map(len, rows)), heads, columns, size)
    copy_right_aligned(merged, parts, rows, columns)
    return merged


def copy_right_aligned(
    memory: torch.Tensor, parts: Sequence[torch.Tensor], rows: Sequence[torch.Tensor], columns: int
) -> None:
    """Copy all parts' rows to ``memory``, [rows, heads, >= columns, size]; each ends at ``columns``."""
    first = 0
    for part, chosen in zip(parts, rows, strict=True):
        padding, last = columns - part.shape[2], first + len(chosen)
        memory[first:last, :, :padding] = 0  # masked, but must not hold old values: 0 x nan is nan
        memory[first:last, :, padding:columns] = part[chosen]
        first = last


def last_into_holes(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order the rows so that as few as possible move: rows beyond the new end fill the free places."""
    count = len(rows)
    order = np.arange(count)
    free = np.ones(count, dtype=np.bool_)
    free[rows[rows < count]] = False
    order[free] = rows[rows >= count]
    return order
