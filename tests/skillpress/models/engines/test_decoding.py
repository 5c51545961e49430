"""Decoding all rows together: compared with the earlier implementation, and the parts that make it fast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from skillpress.core.engine import Sampling
from skillpress.models.engines.local import batches, decoding_cache
from skillpress.models.engines.local import engine as local
from skillpress.models.engines.local.decoding_cache import DecodingCache, bytes_per_token, can_merge
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.local.grouped_attention import NAME
from tests.support.models.families import family
from tests.support.models.sampled import assert_alike, policy_of, prompts_of
from tests.support.models.tiny import tiny_policy

SAMPLING = Sampling(max_new_tokens=8)


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3", "GPT2", "Cohere2", "Gemma3Text", "Mistral"])
def test_rows_of_several_passes_are_decoded_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Covers sliding windows, shared heads and rows that move."""
    policy, prompts = policy_of(name), prompts_of(24, 20)
    expected = [LocalEngine(policy).generate([prompt], SAMPLING, [n])[0] for n, prompt in enumerate(prompts)]
    assert len({len(completion.token_ids) for completion in expected}) > 2, "rows stop at different times"
    monkeypatch.setattr(local, "PREFILL_TOKENS", 50)
    monkeypatch.setattr(decoding_cache, "MOVED_IN_ORDER", 0)
    engine = LocalEngine(policy)
    steps = 0

    def count(*arguments: object) -> None:
        nonlocal steps
        steps += 1

    engine.model.register_forward_hook(count)
    assert_alike(engine.generate(prompts, SAMPLING, range(24)), expected)
    longest = max(len(completion.token_ids) for completion in expected)
    different = sorted(set(prompts), key=lambda prompt: (len(prompt), prompt))
    assert steps == len(list(engine._passes(different))) + longest - 1


def test_a_bound_on_the_cache_makes_several_batches_of_the_same_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy, prompts = tiny_policy(), prompts_of(40)
    whole = LocalEngine(policy).generate(prompts, SAMPLING, range(40))
    monkeypatch.setattr(batches, "CACHE_BYTES", 100 * bytes_per_token(policy.model.config, 4))
    engine = LocalEngine(policy)
    found = engine._batches(prompts, SAMPLING.max_new_tokens, {})
    assert len(found) > 3 and sorted(row for batch in found for row in batch) == list(range(40))
    assert_alike(engine.generate(prompts, SAMPLING, range(40)), whole)


def test_long_padding_makes_another_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalEngine(tiny_policy())
    prompts = [(3,) * length for length in (1, 2, 30, 31)]
    assert len(list(engine._passes(prompts))) == 1
    monkeypatch.setattr(local, "PADDING_WORK", 20 * tiny_policy().parameters)
    assert [len(some) for some in engine._passes(prompts)] == [2, 2]


def test_query_heads_that_share_keys_are_grouped_in_the_engines_copy_alone() -> None:
    shared, own = policy_of("Llama"), tiny_policy()
    assert LocalEngine(shared).model.config._attn_implementation == NAME
    assert shared.model.config._attn_implementation == "sdpa"
    assert LocalEngine(own).model.config._attn_implementation == "sdpa"


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1)))
)
def test_rows_that_are_kept_hold_their_own_keys_in_either_way(case: tuple[int, set[int]]) -> None:
    count, kept = case[0], np.array(sorted(case[1]))
    for bound in (0, 1 << 30):
        cache = DynamicCache()
        keys = torch.arange(count * 3.0).reshape(count, 1, 3, 1)
        cache.update(keys.clone(), -keys, 0)
        merged = DecodingCache.merged([cache], [torch.arange(count)], 3, 1)
        before, decoding_cache.MOVED_IN_ORDER = decoding_cache.MOVED_IN_ORDER, bound
        try:
            order = merged.keep(kept)
        finally:
            decoding_cache.MOVED_IN_ORDER = before
        assert sorted(order.tolist()) == kept.tolist()
        new = torch.full((len(order), 1, 1, 1), 99.0)
        found, values = merged.update(new, new, 0)
        assert torch.equal(found[:, :, :3], keys[order]) and torch.equal(values[:, :, :3], -keys[order])
        assert torch.equal(found[:, :, 3:], new) and merged.get_seq_length() == 4


def test_caches_of_attention_can_be_merged() -> None:
    assert can_merge(family("Llama").config) and can_merge(family("Gemma3Text").config)
