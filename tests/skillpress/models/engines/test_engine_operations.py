"""How many operations the local engine launches, and how often its host waits: counted on a CPU.

Static steps are the ones that a GPU records, so the model's own operations are not launched one by one there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks.operations import Counts, Operations
from skillpress.core.engine import Completion, Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.local.decoding import Answers
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.local.static_decoding import StaticDecoder
from skillpress.models.policy import Policy
from tests.support.models.families import family
from tests.support.models.tiny import tiny_policy

LAYERS = 6
NEW = 12
ENGINES = ("growing", "static")


def engine_of(name: str, stop: range = range(0, 60, 12)) -> LocalEngine:
    """A Llama of six layers whose prompts grow."""
    model = family("Llama", num_hidden_layers=LAYERS, max_position_embeddings=512)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = list(stop)
    engine = LocalEngine(Policy(model, tiny_policy().tokenizer), growing=True)
    if name == "static":
        engine.decoder = StaticDecoder(engine.model, lambda: lambda step: step)
    return engine


class Beside:
    """Operations that are not the model's, and waits."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.operations = self.waits = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        counts, began = Counts(), 0

        def begin(*_: object) -> None:
            nonlocal began
            began = counts.operations.total()

        def end(*_: object) -> None:
            self.operations -= counts.operations.total() - began

        model = self._engine.model
        hooks = [model.register_forward_pre_hook(begin), model.register_forward_hook(end)]
        with Operations(counts):
            yield
        for hook in hooks:
            hook.remove()
        self.operations += counts.operations.total()
        self.waits = counts.synchronisations.total()


def turn(engine: LocalEngine, prompts: list[TokenIds], seed: int) -> tuple[list[Completion], Beside]:
    beside = Beside(engine)
    with beside.counted():
        answers = engine.generate(prompts, Sampling(max_new_tokens=NEW), range(seed, seed + len(prompts)))
    return answers, beside


def third_turn(engine: LocalEngine, rows: int) -> Beside:
    """The prompts grow by responses and by texts of mixed lengths."""
    random = np.random.default_rng(0)
    prompts = [tuple(random.integers(3, 60, random.integers(5, 30)).tolist()) for _ in range(rows)]
    for step in range(3):
        answers, beside = turn(engine, prompts, 1000 * step)
        said = [tuple(random.integers(3, 60, random.integers(1, 9)).tolist()) for _ in prompts]
        prompts = [(*p, *a.token_ids, *s) for p, a, s in zip(prompts, answers, said, strict=True)]
    return beside


@pytest.mark.parametrize("name", ENGINES)
def test_a_turn_of_growing_prompts_takes_few_operations_a_row(name: str) -> None:
    """Two per row keep its keys and values, whatever the number of layers. It was 200 with six layers."""
    few, many = (third_turn(engine_of(name), rows) for rows in (16, 64))
    assert (many.operations - few.operations) / 48 <= 4
    assert many.operations <= 900


@pytest.mark.parametrize("name", ENGINES)
def test_a_token_takes_few_operations_beside_the_models(name: str) -> None:
    short, long = (turn_of(name, new) for new in (6, 11))
    assert (long.operations - short.operations) / 5 <= 12


def turn_of(name: str, new: int) -> Beside:
    """Rows that do not stop, of a shape that is recorded already."""
    engine = engine_of(name, stop=range(0))
    prompts: list[TokenIds] = [(5, 6, 7, place) for place in range(3, 40)]
    for _ in range(2):
        beside = Beside(engine)
        with beside.counted():
            engine.generate(prompts, Sampling(max_new_tokens=new), range(len(prompts)))
    return beside


def test_the_host_waits_once_per_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the drawn tokens, which ``Answers.add`` reads; nothing else waits, also when rows end and move."""
    engine, reads = engine_of("static"), 0
    add = Answers.add

    def counted(answers: Answers, *arguments: object) -> object:
        nonlocal reads
        reads += 1
        return add(answers, *arguments)  # type: ignore[arg-type]

    third_turn(engine, 64)
    monkeypatch.setattr(Answers, "add", counted)
    answers, beside = turn(engine, [(7, 8, place) for place in range(3, 60)], 0)
    longest = max(len(answer.token_ids) for answer in answers)
    assert len({len(answer.token_ids) for answer in answers}) > 3, "rows end at different times"
    assert (beside.waits, reads) == (0, longest)
