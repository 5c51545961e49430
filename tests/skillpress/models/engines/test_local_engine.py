"""The local engine: what it samples, what it reports, and what it avoids computing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from skillpress.core.engine import Engine, Sampling
from skillpress.models.engines.local import engine as local
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from tests.support.models.tiny import tiny_policy

SAMPLING = Sampling(max_new_tokens=8)


def prompts_of(count: int, seed: int = 0) -> list[tuple[int, ...]]:
    random = np.random.default_rng(seed)
    return [tuple(map(int, random.integers(2, 50, random.integers(1, 12)))) for _ in range(count)]


def test_it_is_an_engine() -> None:
    assert isinstance(LocalEngine(tiny_policy()), Engine)


def test_a_row_depends_on_its_prompt_and_seed_alone() -> None:
    engine, prompts = LocalEngine(tiny_policy()), prompts_of(40)
    together = engine.generate(prompts, SAMPLING, range(40))
    for row in (0, 7, 39):
        alone = engine.generate([prompts[row]], SAMPLING, [row])[0]
        assert alone.token_ids == together[row].token_ids
        np.testing.assert_allclose(alone.logprobs, together[row].logprobs, atol=1e-5)
    shuffled = np.random.default_rng(1).permutation(40).tolist()
    again = engine.generate([prompts[row] for row in shuffled], SAMPLING, shuffled)
    assert [c.token_ids for c in again] == [together[row].token_ids for row in shuffled]


def test_prompts_longer_than_one_prefill_chunk_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = prompts_of(40)
    whole = LocalEngine(tiny_policy()).generate(prompts, SAMPLING, range(40))
    monkeypatch.setattr(local, "PREFILL_TOKENS", 30)
    pieces = LocalEngine(tiny_policy()).generate(prompts, SAMPLING, range(40))
    assert [c.token_ids for c in pieces] == [c.token_ids for c in whole]


def test_responses_end_at_a_stop_token_or_at_the_length_limit() -> None:
    policy = tiny_policy()
    (stop,) = policy.stop_token_ids
    for completion in LocalEngine(policy).generate(prompts_of(300), SAMPLING, range(300)):
        assert len(completion.token_ids) == len(completion.logprobs) <= 8
        assert stop not in completion.token_ids[:-1]
        assert (completion.finish_reason == "stop") == (completion.token_ids[-1] == stop)
        assert completion.finish_reason == "stop" or len(completion.token_ids) == 8


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_reported_logprobs_are_those_that_training_computes(temperature: float) -> None:
    policy = tiny_policy()
    prompts = prompts_of(20)
    sampling = Sampling(temperature, max_new_tokens=8)
    for prompt, completion in zip(
        prompts, LocalEngine(policy).generate(prompts, sampling, range(20)), strict=True
    ):
        logprobs, _ = ResponseScorer(policy.model)(
            pack_responses([(prompt, completion.token_ids)]), temperature
        )
        np.testing.assert_allclose(logprobs.detach().numpy(), completion.logprobs, atol=1e-4)


def test_equal_prompts_are_prefilled_once() -> None:
    engine = LocalEngine(tiny_policy())
    completions = engine.generate([(5, 6, 7)] * 8 + [(9, 9)], SAMPLING, range(9))
    assert sum(c.prefilled_tokens for c in completions) == 5
    assert len({c.token_ids for c in completions[:8]}) > 1


def test_no_token_is_sampled_for_a_row_that_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, drawn = LocalEngine(tiny_policy()), []
    draw = engine.draw

    def counted(logits: torch.Tensor, *others: Any) -> tuple[torch.Tensor, torch.Tensor]:
        drawn.append(len(logits))
        return draw(logits, *others)

    monkeypatch.setattr(engine, "draw", counted)
    completions = engine.generate(prompts_of(100), SAMPLING, range(100))
    assert sum(drawn) == sum(len(c.token_ids) for c in completions)


def test_new_weights_are_sampled_from_and_the_trained_model_is_not_shared() -> None:
    first, second = tiny_policy(0), tiny_policy(1)
    engine, prompts = LocalEngine(first), prompts_of(30)
    before = engine.generate(prompts, SAMPLING, range(30))
    with torch.no_grad():
        first.model.get_output_embeddings().weight.zero_()
    assert engine.generate(prompts, SAMPLING, range(30)) == before
    engine.update_weights(second.model.state_dict(), 3)
    assert engine.version == 3
    assert engine.generate(prompts, SAMPLING, range(30)) == LocalEngine(second).generate(
        prompts, SAMPLING, range(30)
    )
