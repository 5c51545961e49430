"""Keys and values of the rows that are decoded together, with room for the tokens to come.

transformers' own cache grows by copying: every token copies all keys and values of all rows, and so
does every row that stops. Here a layer's memory is taken once, for the longest prompt and the longest
response; a token is written where it belongs, and where a row stops, the last row takes its place.
Prompts may have been prefilled in several passes: their keys and values meet here, each row's newest
token in the same column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from skillpress.models.engines.local.kept import Layers

MOVED_IN_ORDER = 1 << 26
"""Bytes of a cache up to which rows keep their order: copying costs little there, and batches that were
decoded in order before stay so, to the bit."""


class DecodingCache(Cache):
    """Rows of keys and values, [rows, heads, columns, head size] per layer."""

    @classmethod
    def merged(
        cls, prefilled: Sequence[DynamicCache], rows: Sequence[torch.Tensor], columns: int, room: int
    ) -> DecodingCache:
        """The chosen rows of several caches, one cache after another; the caches are used up.

        Args:
            rows: for each cache the rows to take, a row as often as it is named.
            columns: of the widest cache; the others are padded on the left.
            room: tokens to come per row.
        """
        layers: list[Any] = []
        for index in range(len(prefilled[0].layers)):
            parts: list[Any] = [cache.layers[index] for cache in prefilled]
            layers.append(_merged_layer(parts, rows, columns, room))
            for part in parts:
                if part is not layers[-1]:
                    part.keys = part.values = None  # their memory is free for the next layer's
        return cls(layers=layers)

    def keep(self, rows: torch.Tensor) -> torch.Tensor:
        """Keep these rows (ascending); returns them in the order that they stand in now."""
        growing = [layer for layer in self.layers if isinstance(layer, _GrowingLayer)]
        in_order = sum(layer.size for layer in growing) <= MOVED_IN_ORDER
        order = rows if in_order else last_into_holes(rows)
        layers: list[Any] = self.layers
        for layer in layers:
            if in_order or not isinstance(layer, _GrowingLayer):
                layer.batch_select_indices(order)
            else:
                layer.move(order)
        return order


def can_merge(config: PretrainedConfig) -> bool:
    """Whether caches of several passes can be put together: those of attention can, other states not."""
    kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    return kinds <= {DynamicLayer, DynamicSlidingWindowLayer}


def can_resume(config: PretrainedConfig) -> bool:
    """Whether a row's keys and values can be taken out and gone on from later: every layer sees all of them.

    A sliding window counts columns, among which there may be padding then.
    """
    return {type(layer) for layer in DynamicCache(config=config).layers} == {DynamicLayer}


def resumed_cache(sequences: Sequence[Layers], config: PretrainedConfig) -> tuple[DynamicCache, torch.Tensor]:
    """A cache of which each row is one sequence's keys and values, padded on the left, and
    [rows, columns] which of its columns are no padding."""
    cache = DynamicCache(config=config)
    lengths = [layers[0][0].shape[1] for layers in sequences]
    columns = max(lengths)
    own_layers: list[Any] = cache.layers
    for index, layer in enumerate(own_layers):
        keys, values = (
            _left_padded([layers[index][part] for layers in sequences], columns) for part in (0, 1)
        )
        layer.update(keys, values)
    device = sequences[0][0][0].device
    padding = columns - torch.tensor(lengths, device=device)
    return cache, torch.arange(columns, device=device) >= padding[:, None]


def _left_padded(rows: Sequence[torch.Tensor], columns: int) -> torch.Tensor:
    """[rows, heads, columns, size] of [heads, tokens, size] each."""
    heads, _, size = rows[0].shape
    padded = rows[0].new_zeros(len(rows), heads, columns, size)
    for row, found in zip(padded, rows, strict=True):
        row[:, columns - found.shape[1] :] = found
    return padded


def bytes_per_token(config: PretrainedConfig, itemsize: int) -> int:
    """Bytes of keys and values that one token of one row takes in all layers."""
    config = config.get_text_config()
    heads = int(config.num_attention_heads)
    shared = int(getattr(config, "num_key_value_heads", None) or heads)
    size = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    return 2 * int(config.num_hidden_layers) * shared * size * itemsize


class _GrowingLayer(DynamicLayer):
    """A layer that writes new tokens into memory it already has."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, columns: int) -> None:
        """Take [rows, heads, columns and room, size] memory, of which ``columns`` are filled."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._all = (keys, values)
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self._show(len(keys), columns)

    @property
    def size(self) -> int:
        """Bytes that the rows in use take, room included."""
        return sum(memory[: self._rows].nbytes for memory in self._all)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write new columns; returns all keys and values up to them."""
        columns = self._columns + key_states.shape[2]
        for memory, new in zip(self._all, (key_states, value_states), strict=True):
            memory[: self._rows, :, self._columns : columns] = new
        return self._show(self._rows, columns)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows in this order, in memory of their own."""
        self._all = (self._all[0][indices], self._all[1][indices])
        self._show(len(indices), self._columns)

    def move(self, order: torch.Tensor) -> None:
        """Keep these rows in this order, moving only those that change place."""
        moved = torch.nonzero(order != torch.arange(len(order), device=order.device)).squeeze(1)
        for memory in self._all:
            memory[moved, :, : self._columns] = memory[order[moved], :, : self._columns]
        self._show(len(order), self._columns)

    def _show(self, rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
        self._rows, self._columns = rows, columns
        keys, values = (memory[:rows, :, :columns] for memory in self._all)
        self.keys, self.values = keys, values
        return keys, values


def _merged_layer(parts: Sequence[Any], rows: Sequence[torch.Tensor], columns: int, room: int) -> Any:
    """One layer of the caches; a kind that cannot be merged comes from a single cache."""
    (first, *_), kind = parts, type(parts[0])
    if kind is DynamicSlidingWindowLayer:
        kept = min(columns, first.sliding_window - 1)
        layer = DynamicSlidingWindowLayer(sliding_window=first.sliding_window)
        layer.lazy_initialization(first.keys, first.values)
        layer.keys, layer.values = _both(parts, rows, kept, 0)
        layer.cumulative_length = columns
        return layer
    if kind is DynamicLayer:
        return _GrowingLayer(*_both(parts, rows, columns, room), columns)
    assert len(parts) == 1
    first.batch_select_indices(rows[0])
    return first


def _both(
    parts: Sequence[Any], rows: Sequence[torch.Tensor], columns: int, room: int
) -> tuple[torch.Tensor, torch.Tensor]:
    keys = _right_aligned([part.keys for part in parts], rows, columns, room)
    return keys, _right_aligned([part.values for part in parts], rows, columns, room)


def _right_aligned(
    parts: Sequence[torch.Tensor], rows: Sequence[torch.Tensor], columns: int, room: int
) -> torch.Tensor:
    """[all rows, heads, columns + room, size]: the parts' rows, each ending at ``columns``."""
    _, heads, _, size = parts[0].shape
    merged = parts[0].new_empty(sum(map(len, rows)), heads, columns + room, size)
    copy_right_aligned(merged, parts, rows, columns)
    return merged


def copy_right_aligned(
    memory: torch.Tensor, parts: Sequence[torch.Tensor], rows: Sequence[torch.Tensor], columns: int
) -> None:
    """Copy the parts' rows to the first rows of [rows, heads, columns or more, size], each ending at
    ``columns``."""
    first = 0
    for part, chosen in zip(parts, rows, strict=True):
        padding, last = columns - part.shape[2], first + len(chosen)
        memory[first:last, :, :padding] = 0  # masked, but not whatever stood in memory: 0 x nan is nan
        memory[first:last, :, padding:columns] = part[chosen]
        first = last


def last_into_holes(rows: torch.Tensor) -> torch.Tensor:
    """The rows such that as few as possible move: those beyond the new end fill what became free."""
    count = len(rows)
    order = torch.arange(count, device=rows.device)
    free = torch.ones(count, dtype=torch.bool, device=rows.device)
    free[rows[rows < count]] = False
    order[free] = rows[rows >= count]
    return order
