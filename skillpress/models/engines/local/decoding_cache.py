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

import torch
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from skillpress.models.engines.local.kept import Layers

MOVED_IN_ORDER = 1 << 26
"""Caches up to this many bytes keep their rows in order, as before, to the bit: copying is cheap."""


class DecodingCache(Cache):
    """Rows of keys and values, [rows, heads, columns, head size] per layer."""

    @classmethod
    def merged(
        cls, prefilled: Sequence[DynamicCache], rows: Sequence[torch.Tensor], columns: int, room: int
    ) -> DecodingCache:
        """The chosen rows of several caches, one cache after another; the caches are consumed.

        Args:
            rows: for each cache the rows to take. A row is taken as often as it is named.
            columns: number of columns of the widest cache; the others are padded on the left.
            room: number of new tokens per row.
        """
        layers: list[Any] = []
        for index in range(len(prefilled[0].layers)):
            parts: list[Any] = [cache.layers[index] for cache in prefilled]
            layers.append(_merged_layer(parts, rows, columns, room))
            for part in parts:
                if part is not layers[-1]:
                    part.keys = part.values = None  # frees their memory for the next layer
        return cls(layers=layers)

    def keep(self, rows: torch.Tensor) -> torch.Tensor:
        """Keep these rows (ascending); return them in their new order."""
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
    """Whether caches of several passes can be merged: attention layers can, other states cannot."""
    kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    return kinds <= {DynamicLayer, DynamicSlidingWindowLayer}


def can_resume(config: PretrainedConfig) -> bool:
    """Whether a row can be taken out and used later: no sliding window, which could count padding."""
    return {type(layer) for layer in DynamicCache(config=config).layers} == {DynamicLayer}


def resumed_cache(sequences: Sequence[Layers], config: PretrainedConfig) -> tuple[DynamicCache, torch.Tensor]:
    """A cache in which each row holds one sequence's keys and values, padded on the left, and a mask [rows,
    columns] that is True for columns that are not padding."""
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
    """[rows, heads, columns, size] from tensors of [heads, tokens, size], padded on the left."""
    heads, _, size = rows[0].shape
    padded = rows[0].new_zeros(len(rows), heads, columns, size)
    for row, found in zip(padded, rows, strict=True):
        row[:, columns - found.shape[1] :] = found
    return padded


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
        self._all = (keys, values)
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self._show(len(keys), columns)

    @property
    def size(self) -> int:
        """Bytes of the rows in use, including their room for new tokens."""
        return sum(memory[: self._rows].nbytes for memory in self._all)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write new columns; return all keys and values up to them."""
        columns = self._columns + key_states.shape[2]
        for memory, new in zip(self._all, (key_states, value_states), strict=True):
            memory[: self._rows, :, self._columns : columns] = new
        return self._show(self._rows, columns)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows in this order, in newly allocated memory."""
        self._all = (self._all[0][indices], self._all[1][indices])
        self._show(len(indices), self._columns)

    def move(self, order: torch.Tensor) -> None:
        """Keep these rows in this order and move only the rows whose place changes."""
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
    """Merge one layer of the caches. A layer type that cannot be merged comes from a single cache."""
    (first, *_), kind = parts, type(parts[0])
    if kind is DynamicSlidingWindowLayer:
        # As in transformers, which keeps one column less than the window: the new token is the last.
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
    """[all rows, heads, columns + room, size]: the rows of all parts, each ending at column ``columns``."""
    _, heads, _, size = parts[0].shape
    merged = parts[0].new_empty(sum(map(len, rows)), heads, columns + room, size)
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


def last_into_holes(rows: torch.Tensor) -> torch.Tensor:
    """Order the rows so that as few as possible move: rows beyond the new end fill the free places."""
    count = len(rows)
    order = torch.arange(count, device=rows.device)
    free = torch.ones(count, dtype=torch.bool, device=rows.device)
    free[rows[rows < count]] = False
    order[free] = rows[rows >= count]
    return order
