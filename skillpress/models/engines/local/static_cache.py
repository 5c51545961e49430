"""Keys and values in memory that keeps its place and its shape, as a recorded decode step needs it.

A step that is recorded once and then played back touches the same addresses every time, and no number of it
may come from Python. So the memory has columns for all that is to come, the column that a step writes is said
by a tensor, every step reads all columns, and a mask hides those that hold nothing. Rows and columns are
rounded up to few shapes, since each is recorded by itself; the memory of a larger shape serves the smaller
ones too, from its beginning on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from skillpress.models.engines.local.decoding_cache import can_resume
from skillpress.models.engines.local.grouped_attention import NAME as GROUPED

COLUMN_STEP = 256
"""Columns are a multiple of this: a step reads at most so many that hold nothing."""


@dataclass(frozen=True)
class Shape:
    """Of one decode step."""

    rows: int
    columns: int

    @classmethod
    def holding(cls, rows: int, columns: int) -> Shape:
        """The smallest of few shapes that has so many rows, and more columns than this: where nothing stands
        in the last one, a step can be tried there."""
        return cls(1 << (rows - 1).bit_length(), (columns // COLUMN_STEP + 1) * COLUMN_STEP)

    def narrowed(self, rows: int) -> Shape:
        """The shape for so many of its rows."""
        return Shape(Shape.holding(rows, 0).rows, self.columns)

    @property
    def tokens(self) -> int:
        """Of all rows."""
        return self.rows * self.columns


def why_not_static(model: PreTrainedModel) -> str | None:
    """What of this model a step of one shape cannot hold; None where nothing is."""
    config = model.config.get_text_config()
    if not can_resume(config):
        return "its layers do not all see all tokens (sliding windows, recurrent states)"
    if config._attn_implementation not in ("sdpa", GROUPED):
        return f"its attention is {config._attn_implementation!r}, not 'sdpa'"
    if not model._can_compile_fullgraph:
        return "what its forward pass does depends on what it computes"
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    sections = [rope, *(section for section in rope.values() if isinstance(section, dict))]
    if {section.get("rope_type") for section in sections} & {"dynamic", "longrope"}:
        return "its position embeddings change with the length of what is sampled"
    return None


class StaticLayer(DynamicLayer):
    """A layer that writes one token of every row and shows all of its memory."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, column: torch.Tensor) -> None:
        """Take [rows, heads, columns, size] memory; ``column``, [1], is where the next token belongs."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys: torch.Tensor = keys
        self.values: torch.Tensor = values
        self._column = column
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one column; returns all of them."""
        self.keys.index_copy_(2, self._column, key_states)
        self.values.index_copy_(2, self._column, value_states)
        return self.keys, self.values


@dataclass(frozen=True)
class StaticInputs:
    """All that a decode step of one shape reads and writes: parts of a :class:`StaticMemory`."""

    tokens: torch.Tensor
    """[rows, 1], one per row. Rows that nobody waits for hold any token."""
    positions: torch.Tensor
    """[rows, 1], of those tokens in their sequences."""
    mask: torch.Tensor
    """[rows, 1, 1, columns], True where a row has a token; the step adds its own column."""
    column: torch.Tensor
    """[1], where the tokens are written, the same in all rows."""
    layers: tuple[StaticLayer, ...]
    logits: torch.Tensor
    """[rows, vocabulary] after the tokens."""

    def step(self, model: PreTrainedModel) -> None:
        """Write the tokens' keys, values and logits. What a step reads stays, so that it can be repeated."""
        self.mask.index_fill_(3, self.column, True)
        output = model(
            input_ids=self.tokens, attention_mask=self.mask, position_ids=self.positions,
            past_key_values=Cache(layers=list(self.layers)), use_cache=True,
        )  # fmt: skip
        self.logits.copy_(output.logits[:, -1])

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Other tokens, positions and masks, to be written to the last column, which no row uses."""
        inputs = (self.tokens, self.positions, self.mask, self.column)
        before = [tensor.clone() for tensor in inputs]
        self.tokens.fill_(1)
        self.positions.fill_(0)
        self.mask.logical_not_()
        self.column.fill_(self.mask.shape[3] - 1)
        try:
            yield
        finally:
            for tensor, value in zip(inputs, before, strict=True):
                tensor.copy_(value)


@dataclass(frozen=True)
class _Piece:
    """Memory for keys, or for values, of one layer."""

    memory: torch.Tensor
    """[tokens x heads x size]."""
    heads: int
    size: int

    @classmethod
    def like(cls, tensor: torch.Tensor, tokens: int) -> _Piece:
        """For so many tokens like those of [rows, heads, columns, size]."""
        _, heads, _, size = tensor.shape
        return cls(tensor.new_zeros(tokens * heads * size), heads, size)

    def part(self, shape: Shape) -> torch.Tensor:
        """[rows, heads, columns, size], from the beginning on."""
        used = self.memory[: shape.tokens * self.heads * self.size]
        return used.view(shape.rows, self.heads, shape.columns, self.size)


class StaticMemory:
    """What the steps of all shapes share: one piece of memory for each tensor of :class:`StaticInputs`."""

    def __init__(self, like: Cache, logits: torch.Tensor, shape: Shape) -> None:
        """Take memory for this shape.

        Args:
            like: keys and values with the heads, sizes and types to come.
            logits: [any, vocabulary], likewise.
        """
        self._whole = shape
        layers: list[Any] = like.layers
        self._layers = [
            tuple(_Piece.like(tensor, shape.tokens) for tensor in (layer.keys, layer.values))
            for layer in layers
        ]
        device = logits.device
        self._tokens, self._positions = torch.zeros(2, shape.rows, 1, dtype=torch.long, device=device)
        self._mask = torch.zeros(shape.tokens, dtype=torch.bool, device=device)
        self._column = torch.zeros(1, dtype=torch.long, device=device)
        self._logits = logits.new_zeros(shape.rows, logits.shape[1])

    def holds(self, shape: Shape) -> bool:
        """Whether there is memory for a step of this shape."""
        return shape.rows <= self._whole.rows and shape.tokens <= self._whole.tokens

    def inputs(self, shape: Shape) -> StaticInputs:
        """The parts for a step of this shape. With fewer rows they are the first rows of a larger shape."""
        rows, columns = shape.rows, shape.columns
        return StaticInputs(
            tokens=self._tokens[:rows],
            positions=self._positions[:rows],
            mask=self._mask[: shape.tokens].view(rows, 1, 1, columns),
            column=self._column,
            layers=tuple(
                StaticLayer(keys.part(shape), values.part(shape), self._column)
                for keys, values in self._layers
            ),
            logits=self._logits[:rows],
        )


def first_rows(inputs: StaticInputs, rows: int, columns: int) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    """Per layer keys and values of the first rows and columns, in memory of their own."""
    return [
        (layer.keys[:rows, :, :columns].clone(), layer.values[:rows, :, :columns].clone())
        for layer in inputs.layers
    ]
