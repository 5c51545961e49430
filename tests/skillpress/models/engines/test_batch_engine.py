"""Engines that compute when asked, and asking any engine for several completions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from skillpress.core.answers import UnansweredError
from skillpress.core.engine import Completion, Promises, Request, Sampling, StateDict
from skillpress.core.trajectory import TokenIds, WeightSpan
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.engines.generate import generate
from skillpress.models.engines.local.engine import LocalEngine
from tests.support.models.tiny import tiny_policy

HOT, COLD = Sampling(max_new_tokens=2), Sampling(0.0, max_new_tokens=2)


class Echo(BatchEngine):
    """Answers with the prompt and records its batches."""

    promises = Promises(exact_seeds=True, exact_logprobs=False, lockstep=True)

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[list[TokenIds], Sampling, list[int]]] = []

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        self.batches.append((list(prompts), sampling, list(seeds)))
        return [Completion(prompt, (0.0,) * len(prompt), "stop") for prompt in prompts]

    def update_weights(self, weights: StateDict, version: int) -> None:
        self.version = version


class OneByOne(Echo):
    """Answers one request at a time, the last one first, and never those with the token 9."""

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        answerable = [request for request in self._queued if 9 not in request.prompt]
        if not answerable:
            return []
        request = answerable[-1]
        self._queued.remove(request)
        return [(request.key, Completion(request.prompt, (), "length"))]


def test_what_is_submitted_in_parts_is_computed_in_one_batch_per_sampling() -> None:
    engine = Echo()
    engine.submit([Request(5, (1, 2), HOT, 50), Request(3, (3,), COLD, 30)])
    engine.submit([Request(9, (4,), HOT, 90)])
    assert not engine.batches, "nothing is computed before it is asked for"
    found = dict(engine.completed(0.0))
    assert engine.batches == [([(1, 2), (4,)], HOT, [50, 90]), ([(3,)], COLD, [30])]
    assert {key: completion.token_ids for key, completion in found.items()} == {5: (1, 2), 3: (3,), 9: (4,)}
    assert engine.completed(60.0) == [], "nothing is left to wait for"


def test_a_completion_says_which_weights_sampled_it() -> None:
    engine = Echo()
    engine.update_weights({}, 7)
    engine.submit([Request(0, (1, 2), HOT, 0)])
    ((_, completion),) = engine.completed(0.0)
    assert completion.weight_spans == (WeightSpan(7, 0, 2),)


def test_what_is_aborted_is_never_computed() -> None:
    engine = Echo()
    engine.submit([Request(0, (1,), HOT, 0)])
    engine.abort()
    assert engine.completed(0.0) == [] and not engine.batches


def test_the_wrapper_gives_what_the_engine_computes() -> None:
    engine = LocalEngine(tiny_policy())
    prompts = [(5, 6), (7,), (5, 6)]
    found = generate(engine, prompts, HOT, [1, 2, 3])
    bare = engine.generate(prompts, HOT, [1, 2, 3])
    assert [replace(each, weight_spans=()) for each in found] == bare


def test_the_wrapper_brings_answers_into_the_order_of_the_prompts() -> None:
    found = generate(OneByOne(), [(1,), (2,), (3,)], HOT, [0, 0, 0])
    assert [completion.token_ids for completion in found] == [(1,), (2,), (3,)]


def test_an_engine_that_does_not_answer_is_an_error_and_forgets_the_rest() -> None:
    engine = OneByOne()
    with pytest.raises(UnansweredError, match=r"the OneByOne did not answer 1 of 3 questions \(\[1\]"):
        generate(engine, [(1,), (9,), (3,)], HOT, [0, 0, 0], seconds=0.0)
    assert generate(engine, [(4,)], HOT, [0])[0].token_ids == (4,)
