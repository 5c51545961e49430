"""A decode step that is recorded once and played back, and compared with the model before it is trusted.

Launching the hundreds of operations of a decode step from Python takes longer than a GPU takes to carry them
out. A CUDA graph launches all of them at once, on the addresses of its recording. What goes wrong there goes
wrong in silence: a number of the recording's moment that is used for ever, or a mask that a model reads
otherwise. So a step is recorded at made-up inputs, and must then give what the model gives by itself at the
true ones, with a cache that grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.errors import UserError
from skillpress.models.engines.local.static_cache import StaticInputs, first_rows

Step = Callable[[], object]
"""Reads and writes the memory that it was made for."""

Record = Callable[[Step], Step]
"""Makes of a step one that does the same; it may carry the step out a few times."""

COMPARED_ROWS = 8
"""Rows that are computed once more to compare a recorded step with."""

WARM_UP = 3
"""Times that a step is carried out before it is recorded: libraries choose kernels and take memory."""


class RecordedStepError(UserError):
    """A recorded step does not compute what the model does."""


class CudaGraphs:
    """Records steps as CUDA graphs, which share the memory for what they compute on the way.

    Never run on a GPU so far.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Step) -> Step:
        """See ``Record``."""
        with torch.cuda.device(self._device):
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(WARM_UP):
                    step()
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            # The learner may use the GPU from a thread of its own meanwhile (training.lag).
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                step()

        def replay() -> None:
            with torch.cuda.device(self._device):
                graph.replay()

        return replay


def recorded(model: PreTrainedModel, inputs: StaticInputs, record: Record, rows: int, column: int) -> Step:
    """A step that was recorded and gives what the model gives.

    Args:
        inputs: as they are before a step of the decoding that goes on.
        rows: of them that are waited for.
        column: that the step writes.

    Raises:
        RecordedStepError: the two differ by more than rounding.
    """
    with inputs.elsewhere():
        step = record(lambda: inputs.step(model))
    inputs.logits.fill_(0)
    step()
    rows = min(rows, COMPARED_ROWS)
    found = [inputs.logits[:rows]]
    for layer in inputs.layers:
        found += [layer.keys[:rows, :, column], layer.values[:rows, :, column]]
    expected = _by_itself(model, inputs, rows, column)
    apart = max(_apart(one, other) for one, other in zip(found, expected, strict=True))
    limit = rounding(inputs.logits.dtype)
    if not apart <= limit:
        rows, _, _, columns = inputs.mask.shape
        raise RecordedStepError(
            f"engine.name: local: a recorded decode step of {type(model).__name__} ({rows} rows, {columns} "
            f"columns, {inputs.logits.dtype}) differs by {apart:.2g} of the size of what the model computes; "
            f"rounding explains {limit:.2g}. Nothing was sampled from it. Take another engine (engine: "
            "{name: vllm}, docs/engines.md), or the CPU (CUDA_VISIBLE_DEVICES=), and report this line."
        )
    return step


def rounding(dtype: torch.dtype) -> float:
    """The share by which equal results may differ, where sums are taken in another order."""
    return max(1e-3, 8 * torch.finfo(dtype).eps)


def _by_itself(model: PreTrainedModel, inputs: StaticInputs, rows: int, column: int) -> list[torch.Tensor]:
    """Logits, and per layer keys and values of the step's tokens, computed with a cache that grows."""
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
    """The mean difference of the row where it is largest, as a share of the row's mean size."""
    found, expected = found.flatten(1).float(), expected.flatten(1).float()
    size = expected.abs().mean(1).clamp(min=torch.finfo(torch.float32).tiny)
    return float(((found - expected).abs().mean(1) / size).max())
