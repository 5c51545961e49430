"""A decode step that is recorded once and replayed, and compared with the model before it is used.

Launching the hundreds of operations of a decode step from Python takes longer than the GPU takes to execute
them. A CUDA graph launches all of them at once, on the addresses of its recording. Its mistakes are silent: a
number from the moment of the recording that is used in every replay, or a mask that a model interprets
differently. So a step is recorded with made-up inputs. With the real inputs it must then give the same result
as the model alone with a growing cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.errors import UserError
from skillpress.models.engines.local.static_cache import StaticInputs, first_rows

Step = Callable[[], object]
"""A function that reads and writes the memory that it was made for."""

Record = Callable[[Step], Step]
"""Turns a step into a recorded step that does the same. It may run the step a few times."""

COMPARED_ROWS = 8
"""Number of rows that are computed a second time for the comparison with a recorded step."""

WARM_UP = 3
"""Number of times that a step is run before it is recorded: libraries choose kernels and allocate memory."""


class RecordedStepError(UserError):
    """A recorded step does not compute the same as the model."""


class CudaGraphs:
    """Records steps as CUDA graphs with shared memory for intermediate results."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Step) -> Step:
        with torch.cuda.device(self._device):
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(WARM_UP):
                    step()
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            # Meanwhile the learner may use the GPU from another thread (training.lag).
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                step()

        def replay() -> None:
            with torch.cuda.device(self._device):
                graph.replay()

        return replay


def recorded(model: PreTrainedModel, inputs: StaticInputs, record: Record, rows: int, column: int) -> Step:
    """Return a recorded step, after checking that it gives the same result as the model.

    Args:
        inputs: the inputs before the next step of the current decoding.
        rows: number of rows whose results are needed.
        column: the column that the step writes.

    Raises:
        RecordedStepError: the two differ by more than rounding.
    """
    with inputs.elsewhere():
        step = record(lambda: inputs.step(model))
    # The recording left logits here; a replay that writes nothing must not pass with them.
    inputs.logits.fill_(0)
    step()
    rows = min(rows, COMPARED_ROWS)
    found = [inputs.logits[:rows]]
    for layer in inputs.layers:
        found += [layer.keys[:rows, :, column], layer.values[:rows, :, column]]
    expected = _by_itself(model, inputs, rows, column)
    apart = max(_apart(one, other) for one, other in zip(found, expected, strict=True))
    limit = rounding(inputs.logits.dtype)
    # Not ``apart > limit``, which is false for NaN.
    if not apart <= limit:
        rows, _, _, columns = inputs.mask.shape
        raise RecordedStepError(
            f"engine.name: local: a recorded decode step of {type(model).__name__} ({rows} rows, {columns} "
            f"columns, {inputs.logits.dtype}) differs by {apart:.2g} of the size of what the model computes; "
            f"rounding explains {limit:.2g}. Nothing was sampled from it. Use another engine (engine: "
            "{name: vllm}, docs/engines.md), or the CPU (CUDA_VISIBLE_DEVICES=), and report this line."
        )
    return step


def rounding(dtype: torch.dtype) -> float:
    """The relative difference that equal results may have if sums are taken in another order."""
    return max(1e-3, 8 * torch.finfo(dtype).eps)


def _by_itself(model: PreTrainedModel, inputs: StaticInputs, rows: int, column: int) -> list[torch.Tensor]:
    """The logits, and per layer the keys and values of the step's tokens, computed with a growing cache."""
    cache = DynamicCache(config=model.config)
    layers: list[Any] = cache.layers
    for layer, (keys, values) in zip(layers, first_rows(inputs, rows, column), strict=True):
        layer.update(keys, values)
    output = model(
        input_ids=inputs.tokens[:rows], attention_mask=inputs.mask[:rows, 0, 0, : column + 1],
        position_ids=inputs.positions[:rows], past_key_values=cache, use_cache=True,
    )  # fmt: skip
    found = [output.logits[:, -1]]
    for layer in layers:
        found += [layer.keys[:, :, column], layer.values[:, :, column]]
    return found


def _apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The mean difference relative to the mean size, of the row in which it is largest."""
    found, expected = found.flatten(1).float(), expected.flatten(1).float()
    # Expected numbers may all be 0: then any difference counts as large, and 0 / 0 must not be NaN.
    size = expected.abs().mean(1).clamp(min=torch.finfo(torch.float32).tiny)
    return float(((found - expected).abs().mean(1) / size).max())
