"""Decoding with steps of a few shapes, each recorded once. The engine decodes in this way on CUDA.

Rows come from any prefill, and the steps do not depend on it. Rows that have ended, and rows that only fill
up a shape, are computed with the others and ignored. When half of the rows have ended, the step with half as
many rows takes over, on the same memory. Memory and recorded steps are kept from one batch to the next, also
after new weights, which are written to the addresses of the old ones. Before an update they are released,
unless the learner does not need their memory (``room.py``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from skillpress.models.engines.local.decoding import Prefilled, columns_of, rows_of_passes
from skillpress.models.engines.local.decoding_cache import copy_right_aligned, last_into_holes
from skillpress.models.engines.local.kept import Layers
from skillpress.models.engines.local.recorded_step import Record, Step, recorded
from skillpress.models.engines.local.room import MemoryRoom
from skillpress.models.engines.local.stacks import move, row_of
from skillpress.models.engines.local.static_cache import Shape, StaticInputs, StaticMemory

MOST_STEPS = 64
"""Maximum number of recorded steps; beyond it, the least recently used one is dropped."""


class StaticDecoder:
    """Decodes as ``decoding.GrowingDecoder`` does, by recorded steps."""

    name = "static"

    def __init__(
        self, model: PreTrainedModel, recorder: Callable[[], Record], room: MemoryRoom | None = None
    ) -> None:
        """Nothing is allocated yet.

        Args:
            recorder: returns a function that records steps of the same memory.
            room: says whether memory and steps may stay during an update; None releases them always.
        """
        self._model, self._room = model, room
        self._recorder = recorder
        self._memory: StaticMemory | None = None
        self._record: Record | None = None
        self._steps: OrderedDict[Shape, Step] = OrderedDict()

    def begin(self, passes: Sequence[Prefilled], fan: NDArray[np.int64], room: int) -> StaticRows:
        columns = max(made.width for made in passes)
        shape = Shape.holding(len(fan), columns + room)
        if self._memory is None or not self._memory.holds(shape):
            self.release()
            cache = next(made.cache for made in passes if made.cache is not None)
            self._memory = StaticMemory(cache, passes[0].logits, shape)
            self._record = self._recorder()
        return StaticRows(self, passes, fan, shape)

    def tokens(self, rows: int, columns: int) -> int:
        """Number of tokens of the shape, and of the prefilled rows in memory with it."""
        return Shape.holding(rows, columns).tokens + rows * columns

    def logits(self, rows: int) -> int:
        """Number of rows of logits: after the prompts, of the shape, and of the model before they are copied
        there."""
        return 2 * rows + 2 * Shape.holding(rows, 0).rows

    @property
    def held(self) -> int:
        """Bytes that stay allocated between batches."""
        return 0 if self._memory is None else self._memory.size

    def rest(self) -> None:
        """Release memory and steps before an update, unless there is room for both."""
        if self._room is None:
            self.release()
        elif not self._room.suffices():
            self.release()
            self._room.released()

    def release(self) -> None:
        self._steps.clear()  # before the memory that they use
        self._record = self._memory = None

    def inputs(self, shape: Shape) -> StaticInputs:
        """Everything that a step of this shape reads and writes."""
        assert self._memory is not None
        return self._memory.inputs(shape)

    def step(self, shape: Shape, inputs: StaticInputs, rows: int, column: int) -> None:
        """Run a step; see :func:`recorded` for the arguments and errors."""
        if shape not in self._steps:
            assert self._record is not None
            while len(self._steps) >= MOST_STEPS:
                self._steps.popitem(last=False)
            self._steps[shape] = recorded(self._model, inputs, self._record, rows, column)
        self._steps.move_to_end(shape)
        self._steps[shape]()


class StaticRows:
    """The open rows, as ``decoding.Decoding``: the first rows of a shape."""

    def __init__(
        self, decoder: StaticDecoder, passes: Sequence[Prefilled], fan: NDArray[np.int64], shape: Shape
    ) -> None:
        """Copy the results of the passes, which are consumed."""
        self._decoder = decoder
        self._shape = shape
        self._rows = len(fan)
        self._filled = max(made.width for made in passes)
        self._inputs = decoder.inputs(shape)
        self._visible = np.concatenate([made.columns(self._filled) for made in passes])[fan]
        self._load(passes, fan)

    def keep(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        order = last_into_holes(rows)
        inputs = self._inputs
        move(inputs.stacks, order, self._filled)
        index = torch.from_numpy(order).to(inputs.tokens.device)
        for memory in (inputs.positions, inputs.mask):
            memory[: len(order)] = memory.index_select(0, index)
        self._visible = self._visible[order]
        self._rows = len(order)
        fitting = self._shape.narrowed(self._rows)
        if fitting != self._shape:
            self._shape, self._inputs = fitting, self._decoder.inputs(fitting)
        return order

    def layers_of(self, row: int) -> Layers:
        columns = columns_of(self._visible, row, self._visible.shape[1], self._filled)
        return row_of(self._inputs.stacks, row, columns)

    def advance(self, model: PreTrainedModel, tokens: torch.Tensor) -> torch.Tensor:
        """See ``decoding.Decoding``. The logits are valid until the next call."""
        inputs = self._inputs
        inputs.tokens[: self._rows, 0] = tokens
        self._decoder.step(self._shape, inputs, self._rows, self._filled)
        inputs.positions.add_(1)
        inputs.column.add_(1)
        self._filled += 1
        return inputs.logits[: self._rows]

    def _load(self, passes: Sequence[Prefilled], fan: NDArray[np.int64]) -> None:
        inputs, columns, device = self._inputs, self._filled, self._inputs.tokens.device
        chosen = rows_of_passes(passes, fan, device)
        caches: list[Any] = [made.cache for made in passes if made.cache is not None]
        for stack in inputs.stacks:
            stack.zero_()  # masked, but 0 x nan is nan
        for index, layer in enumerate(inputs.layers):
            parts = [cache.layers[index] for cache in caches]
            copy_right_aligned(layer.keys, [part.keys for part in parts], chosen, columns)
            copy_right_aligned(layer.values, [part.values for part in parts], chosen, columns)
            for part in parts:
                part.keys = part.values = None
        # Rows that only fill the shape are computed too, so they need valid tokens and positions.
        inputs.tokens.zero_()
        inputs.positions.zero_()
        lengths = np.concatenate([made.lengths for made in passes])[fan]
        inputs.positions[: self._rows, 0] = torch.from_numpy(lengths).to(device)
        # Rows that only fill the shape see nothing but their own column, which the step adds.
        inputs.mask.zero_()
        inputs.mask[: self._rows, 0, 0, :columns] = torch.from_numpy(self._visible).to(device)
        inputs.column.fill_(columns)
