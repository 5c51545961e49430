"""Keys and values in memory with a fixed place and shape, as a recorded decode step needs it.

A step that is recorded once and then replayed uses the same addresses every time, and none of its numbers may
come from Python. So the memory has columns for all future tokens, a tensor holds the column that a step
writes, every step reads all columns, and a mask hides the empty ones. Rows and columns are rounded up to a
few shapes, since each shape is recorded separately. The memory of a larger shape serves the smaller ones too,
which use its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from skillpress.models.engines.local import stacks
from skillpress.models.engines.local.decoding_cache import can_resume
from skillpress.models.engines.local.grouped_attention import NAME as GROUPED
from skillpress.models.engines.local.stacks import Stacks

COLUMN_STEP = 256
"""The number of columns is a multiple of this; a step reads at most this many empty columns."""


@dataclass(frozen=True)
class Shape:
    """Shape of one decode step."""

    rows: int
    columns: int

    @classmethod
    def holding(cls, rows: int, columns: int) -> Shape:
        """The smallest shape with these rows and a free last column, where a step can be tested."""
        # Rows: the next power of two. Columns: rounded up, and always at least one more than asked.
        return cls(1 << (rows - 1).bit_length(), (columns // COLUMN_STEP + 1) * COLUMN_STEP)

    def narrowed(self, rows: int) -> Shape:
        """The shape for this many of its rows."""
        return Shape(Shape.holding(rows, 0).rows, self.columns)

    @property
    def tokens(self) -> int:
        """Number of tokens of all rows."""
        return self.rows * self.columns


def why_not_static(model: PreTrainedModel) -> str | None:
    """The reason why a step of fixed shape does not support this model; None if it does."""
    config = model.config.get_text_config()
    if not can_resume(config):
        return "its layers do not all see all tokens (sliding windows, recurrent states)"
    if config._attn_implementation not in ("sdpa", GROUPED):
        return f"its attention is {config._attn_implementation!r}, not 'sdpa'"
    if not model._can_compile_fullgraph:
        return "the operations of its forward pass depend on computed values"
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    sections = [rope, *(section for section in rope.values() if isinstance(section, dict))]
    if {section.get("rope_type") for section in sections} & {"dynamic", "longrope"}:
        return "its position embeddings change with the length of the sequence"
    return None


class StaticLayer(DynamicLayer):
    """A layer that writes one token of every row and shows all of its memory."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, column: torch.Tensor) -> None:
        """Use this memory, [rows, heads, columns, size]. ``column``, [1], is the column of the next token."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys: torch.Tensor = keys
        self.values: torch.Tensor = values
        self._column = column
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one column; return all of them."""
        self.keys.index_copy_(2, self._column, key_states)
        self.values.index_copy_(2, self._column, value_states)
        return self.keys, self.values


@dataclass(frozen=True)
class StaticInputs:
    """Everything that a decode step of one shape reads and writes: parts of a :class:`StaticMemory`."""

    tokens: torch.Tensor
    """[rows, 1], one token per row. Rows whose results are not needed hold any token."""
    positions: torch.Tensor
    """[rows, 1], the positions of those tokens in their sequences."""
    mask: torch.Tensor
    """[rows, 1, 1, columns], True where a row has a token; the step adds its own column."""
    column: torch.Tensor
    """[1], the column in which the tokens are written, the same for all rows."""
    stacks: Stacks
    """The memory of all layers."""
    layers: tuple[StaticLayer, ...]
    logits: torch.Tensor
    """[rows, vocabulary], the logits after the tokens."""

    def step(self, model: PreTrainedModel) -> None:
        """Write the tokens' keys, values and logits. Inputs do not change, so a step can be repeated."""
        self.mask.index_fill_(3, self.column, True)
        output = model(
            input_ids=self.tokens, attention_mask=self.mask, position_ids=self.positions,
            past_key_values=Cache(layers=list(self.layers)), use_cache=True,
        )  # fmt: skip
        # Each recording has its output in another place; callers read this one.
        self.logits.copy_(output.logits[:, -1])

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """The block computes with made-up inputs, which are written to the last column, which no row uses."""
        inputs = (self.tokens, self.positions, self.mask, self.column)
        before = [tensor.clone() for tensor in inputs]
        self.tokens.fill_(1)
        self.positions.fill_(0)
        # The opposite of the real mask: a recording that holds on to a mask then fails the comparison.
        self.mask.logical_not_()
        self.column.fill_(self.mask.shape[3] - 1)
        try:
            yield
        finally:
            for tensor, value in zip(inputs, before, strict=True):
                tensor.copy_(value)


class StaticMemory:
    """Memory shared by the steps of all shapes: one piece for each tensor of :class:`StaticInputs`."""

    def __init__(self, like: Cache, logits: torch.Tensor, shape: Shape) -> None:
        """Allocate memory for this shape.

        Args:
            like: keys and values with the same heads, sizes and types.
            logits: [any, vocabulary], with the same vocabulary and type.
        """
        self._whole = shape
        layers: list[Any] = like.layers
        examples = [tensor for layer in layers for tensor in (layer.keys, layer.values)]
        # As tokens of a single row: shapes divide them in other ways.
        self._stacks = stacks.like(examples, 1, shape.tokens)
        device = logits.device
        self._tokens, self._positions = torch.zeros(2, shape.rows, 1, dtype=torch.long, device=device)
        self._mask = torch.zeros(shape.tokens, dtype=torch.bool, device=device)
        self._column = torch.zeros(1, dtype=torch.long, device=device)
        self._logits = logits.new_zeros(shape.rows, logits.shape[1])

    @property
    def size(self) -> int:
        """Bytes of keys, values and logits."""
        return sum(stack.nbytes for stack in self._stacks) + self._logits.nbytes

    def holds(self, shape: Shape) -> bool:
        """Whether the memory suffices for a step of this shape."""
        return shape.rows <= self._whole.rows and shape.tokens <= self._whole.tokens

    def inputs(self, shape: Shape) -> StaticInputs:
        """The parts for a step of this shape. With fewer rows, they are the first rows of a larger shape."""
        rows, columns = shape.rows, shape.columns
        parts = tuple(_part(stack, shape) for stack in self._stacks)
        pieces = stacks.pieces_of(parts)
        return StaticInputs(
            tokens=self._tokens[:rows],
            positions=self._positions[:rows],
            mask=self._mask[: shape.tokens].view(rows, 1, 1, columns),
            column=self._column,
            stacks=parts,
            layers=tuple(
                StaticLayer(keys, values, self._column)
                for keys, values in zip(pieces[::2], pieces[1::2], strict=True)
            ),
            logits=self._logits[:rows],
        )


def _part(stack: torch.Tensor, shape: Shape) -> torch.Tensor:
    """[pieces, rows, heads, columns, size], from the beginning of each piece's memory."""
    pieces, _, heads, _, size = stack.shape
    used = stack.view(pieces, -1)[:, : shape.tokens * heads * size]
    return used.view(pieces, shape.rows, heads, shape.columns, size)


def first_rows(inputs: StaticInputs, rows: int, columns: int) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
    """Per layer (keys, values) of the first rows and columns, as copies."""
    return [
        (layer.keys[:rows, :, :columns].clone(), layer.values[:rows, :, :columns].clone())
        for layer in inputs.layers
    ]
