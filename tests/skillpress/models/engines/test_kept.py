"""Kept keys and values: found by prefix, bounded in size, and without effect on the responses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.engine import Completion, Request, Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.local import engine as local
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.local.kept import KeptSequence, KeptSequences
from tests.support.models.sampled import policy_of
from tests.support.models.tiny import tiny_policy

SAMPLING = Sampling(max_new_tokens=6)
tokens = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple)


def sequence(ids: TokenIds) -> KeptSequence:
    """One layer, 8 bytes per token."""
    return KeptSequence(ids, (torch.zeros(2, 1, len(ids), 1),))


@given(st.lists(tokens, max_size=12), tokens)
def test_the_longest_kept_sequence_that_a_prompt_goes_beyond_is_found(
    kept: list[TokenIds], prompt: TokenIds
) -> None:
    store = KeptSequences(1 << 20)
    for ids in kept:
        store.put(sequence(ids))
    prefixes = [ids for ids in kept if len(ids) < len(prompt) and prompt[: len(ids)] == ids]
    found = store.find(prompt)
    assert (found.tokens if found else ()) == max(prefixes, key=len, default=())
    assert store.size == 8 * sum(map(len, set(kept)))


def test_what_was_not_asked_for_longest_is_forgotten_first_and_nothing_of_this_round() -> None:
    store = KeptSequences(8 * 6)
    for first in (1, 2, 3):
        store.begin_round()
        store.put(sequence((first, first)))
    store.begin_round()
    assert store.find((1, 1, 9)) is not None
    store.put(sequence((4, 4)))
    assert [store.find((n, n, 9)) is not None for n in (1, 2, 3, 4)] == [True, False, True, True]
    store.put(sequence((5, 5)))
    assert store.find((5, 5, 9)) is None, "all others were asked for in this round"
    store.begin_round()
    store.put(sequence((6,) * 7))
    assert store.find((6,) * 8) is None, "larger than the limit"
    assert store.size <= 8 * 6


def test_a_dropped_sequence_is_gone_and_its_bytes_too() -> None:
    store = KeptSequences(1 << 20)
    store.put(sequence((1, 2)))
    store.drop(sequence((1, 2)))
    assert len(store) == 1, "another sequence of the same tokens"
    found = store.find((1, 2, 3))
    assert found is not None
    store.drop(found)
    assert (len(store), store.size, store.find((1, 2, 3))) == (0, 0, None)


def play(engine: LocalEngine, steps: int, episodes: int = 9) -> list[list[Completion]]:
    """Episodes whose prompts grow by the response and by new tokens of varying length. Groups of three share
    their first prompt, and one more episode begins at every step."""
    random = np.random.default_rng(0)
    openings = [tuple(random.integers(3, 50, 3 + group).tolist()) for group in range(episodes)]
    prompts = {number: openings[number // 3] for number in range(episodes)}
    found = []
    for step in range(steps):
        answers = engine.generate(
            list(prompts.values()), SAMPLING, [100 * step + number for number in prompts]
        )
        found.append(answers)
        for number, answer in zip(prompts, answers, strict=True):
            said = tuple(np.random.default_rng((step, number)).integers(3, 50, 1 + number % 4).tolist())
            prompts[number] += answer.token_ids + said
        prompts[episodes + step] = openings[-1 - step % 3]
    return found


def prefilled(found: list[list[Completion]]) -> int:
    """Prompt tokens that the engine computed for all these answers."""
    return sum(answer.prefilled_tokens or 0 for answers in found for answer in answers)


def assert_alike(found: list[list[Completion]], expected: list[list[Completion]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [c.token_ids for c in ours] == [c.token_ids for c in theirs]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


@pytest.mark.parametrize("new", [1, 6])
@pytest.mark.parametrize("name", ["Llama", "Qwen3", "GPT2"])
def test_responses_are_the_same_whether_keys_and_values_are_kept_or_not(
    name: str, new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SAMPLING", Sampling(max_new_tokens=new))
    policy = policy_of(name)
    growing = LocalEngine(policy, growing=True)
    assert_alike(play(growing, 4), play(LocalEngine(policy), 4))
    assert growing.kept is not None and len(growing.kept)
    monkeypatch.setattr(local, "PREFILL_TOKENS", 20)
    pieces = LocalEngine(policy, growing=True)
    assert_alike(play(pieces, 4), play(LocalEngine(policy), 4))


def test_a_prompt_that_goes_on_costs_its_new_tokens_and_the_last_one_that_was_sampled() -> None:
    engine, prompt = LocalEngine(tiny_policy(), growing=True), (5, 6, 7)
    computed = []
    for step in range(4):
        (answer,) = engine.generate([prompt], SAMPLING, [step])
        computed.append(answer.prefilled_tokens)
        prompt += answer.token_ids + (8,) * (step + 1)
    assert computed == [3, 2, 3, 4], "one said, two said ..., and one token fed again"


def test_rollouts_that_part_after_a_shared_prompt_each_go_on_from_their_own() -> None:
    engine = LocalEngine(tiny_policy(), growing=True)
    first = engine.generate([(5, 6, 7)] * 8, SAMPLING, range(8))
    prompts = [(5, 6, 7, *answer.token_ids, 9) for answer in first]
    assert len(set(prompts)) > 1
    second = engine.generate(prompts, SAMPLING, range(8))
    assert sum(answer.prefilled_tokens for answer in second) == 2 * len(set(prompts))
    plain = LocalEngine(tiny_policy()).generate(prompts, SAMPLING, range(8))
    assert [c.token_ids for c in second] == [c.token_ids for c in plain]


def test_new_weights_sleep_and_abort_forget_what_the_old_ones_computed() -> None:
    policy = tiny_policy()
    for forget in (
        lambda engine: engine.update_weights(policy.model.state_dict(), 1),
        lambda engine: engine.sleep(),
        lambda engine: engine.abort(),
    ):
        engine = LocalEngine(policy, growing=True)
        engine.generate([(5, 6, 7)], SAMPLING, [0])
        assert engine.kept is not None and len(engine.kept) == 1
        forget(engine)
        assert len(engine.kept) == 0


def test_short_memory_keeps_some_episodes_and_changes_no_response(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = play(LocalEngine(tiny_policy()), 5)
    whole = play(LocalEngine(tiny_policy(), growing=True), 5)
    monkeypatch.setattr(local, "KEPT_BYTES", 40 * 256)  # 40 tokens
    short = LocalEngine(tiny_policy(), growing=True)
    found = play(short, 5)
    assert_alike(found, plain)
    assert short.kept is not None and short.kept.size <= 40 * 256
    assert prefilled(whole) < prefilled(found) < prefilled(plain)


@pytest.mark.parametrize("name", ["Mistral", "Gemma3Text"])
def test_nothing_is_kept_of_a_model_with_a_sliding_window(name: str) -> None:
    assert LocalEngine(policy_of(name), growing=True).kept is None


def test_nothing_is_kept_where_prompts_do_not_grow() -> None:
    engine = LocalEngine(tiny_policy())
    assert engine.kept is None
    engine.submit([Request(0, (5, 6), SAMPLING, 0)])
    assert len(engine.completed(0.0)) == 1
