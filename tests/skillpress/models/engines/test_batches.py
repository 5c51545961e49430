"""Which rows are decoded together, and whether the estimate of their memory is what is allocated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.engine import Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.local import batches
from skillpress.models.engines.local.batches import WaitingRow, batches_of, memory_for_rows, share_of
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.local.static_cache import Shape
from skillpress.models.engines.local.static_decoding import StaticDecoder
from skillpress.models.policy import Policy
from tests.support.models.families import family
from tests.support.models.tiny import tiny_policy

rows_of_any_length = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=60)


def area(count: int, columns: int) -> int:
    return count * columns


def rows_of(lengths: list[tuple[int, int]]) -> list[WaitingRow]:
    return [WaitingRow(number, *length) for number, length in enumerate(sorted(lengths, key=sum))]


@given(rows_of_any_length, st.integers(1, 900))
def test_every_row_is_in_one_batch_that_fits_or_alone(lengths: list[tuple[int, int]], limit: int) -> None:
    rows = rows_of(lengths)
    found = batches_of(rows, area, limit)
    assert [number for batch in found for number in batch] == list(range(len(rows)))
    for batch in found:
        widths = [(rows[number].kept, rows[number].new) for number in batch]
        grown = [width for width in widths if width[0]]
        joined = max(kept for kept, _ in grown) + max(new for _, new in grown) if grown else 0
        columns = max(joined, max(new for _, new in widths))
        assert len(batch) == 1 or area(len(batch), columns) <= limit


@pytest.mark.parametrize(("room", "sizes"), [(1024, [1024]), (700, [512, 512]), (500, [342, 341, 341])])
def test_batches_of_equal_rows_are_equal(room: int, sizes: list[int]) -> None:
    """Filled one after another they would have 700 and 324."""
    found = [len(batch) for batch in batches_of(rows_of([(0, 100)] * 1024), area, room * 100)]
    assert len(found) == len(sizes)
    assert max(found) <= 1.03 * max(sizes)


def test_a_thousand_rows_that_took_three_batches_take_one_where_memory_is_free() -> None:
    """SmolLM2's bytes per token; prompts of 25 to 256 tokens and 64 new ones, as they were measured."""
    lengths = np.linspace(25, 256, 1024).astype(int).tolist()

    def size(count: int, columns: int) -> int:
        return (Shape.holding(count, columns + 63).tokens + count * (columns + 63)) * 23_040

    found = [
        len(batches_of(rows_of([(0, length) for length in lengths]), size, limit))
        for limit in (8 << 30, share_of(free=100 << 30, unused=2 << 30, held=0))
    ]
    assert found == [3, 1]


def test_a_gpu_gives_half_of_what_is_free_unused_or_held_by_the_former_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Measuring a GPU is replaced."""
    assert memory_for_rows(torch.device("cpu"), 5) == batches.CACHE_BYTES
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 30)
    assert memory_for_rows(torch.device("cuda", 0), 40) == (100 + 50 - 30 + 40) // 2


class Allocated:
    """Watches an engine; the bytes of the tensors of keys, values and logits of its batches."""

    def __init__(self, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[int] = []
        self._begin, self._decoder = engine.decoder.begin, engine.decoder
        monkeypatch.setattr(engine.decoder, "begin", self._watched)

    def _watched(self, passes: Any, fan: Any, room: int) -> Any:
        layers = [layer for made in passes for layer in made.cache.layers]
        prompts = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
        logits = len(fan) * passes[0].logits[0].nbytes
        state: Any = self._begin(passes, fan, room)
        if isinstance(self._decoder, StaticDecoder):
            # Those drawn from and the model's, beside those of the shape, which belong to the memory.
            self.found.append(prompts + self._decoder.held + 2 * logits)
        else:
            self.found.append(sum(stack.nbytes for stack in state.cache.stacks) + 2 * logits)
        return state


def grown(prompts: list[TokenIds], answers: Any) -> list[TokenIds]:
    random = np.random.default_rng(1)
    said = [tuple(random.integers(3, 60, random.integers(1, 40)).tolist()) for _ in prompts]
    return [(*p, *a.token_ids, *s) for p, a, s in zip(prompts, answers, said, strict=True)]


@pytest.mark.parametrize(("name", "most"), [("growing", 1.02), ("static", 1.6)])
@pytest.mark.parametrize("model", ["Llama", "Qwen3"])
def test_a_batchs_estimate_is_what_is_allocated(
    model: str, name: str, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For prompts that grow too. For static shapes it counts prompts with room for responses, and rows beyond
    the open ones."""
    policy = Policy(family(model, max_position_embeddings=512), tiny_policy().tokenizer)
    engine = LocalEngine(policy, growing=True)
    if name == "static":
        engine.decoder = StaticDecoder(engine.model, lambda: lambda step: step)
    allocated = Allocated(engine, monkeypatch)
    sizes: list[int] = []
    size = engine.size
    monkeypatch.setattr(engine, "size", lambda *of: sizes.append(size(*of)) or sizes[-1])
    random = np.random.default_rng(0)
    prompts = [tuple(random.integers(3, 60, random.integers(20, 90)).tolist()) for _ in range(30)]
    for turn in range(3):
        sizes.clear()
        answers = engine.generate(prompts, Sampling(max_new_tokens=20), range(30 * turn, 30 * turn + 30))
        assert allocated.found[-1] <= sizes[-1] <= most * allocated.found[-1]
        prompts = grown(prompts, answers)
