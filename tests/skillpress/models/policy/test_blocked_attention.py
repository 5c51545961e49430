"""Attention in blocks: the written-out attention with its gradients, whatever the mask and the blocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedModel

from skillpress.core.engine import Sampling
from skillpress.core.errors import PolicyError
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy, blocked_attention, save_policy
from skillpress.models.policy.agreement import check_agreement, check_family, example_pairs
from skillpress.models.policy.attention import for_sampling, use_attention
from skillpress.models.policy.blocked_attention import attend
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import pack_responses
from tests.support.models.families import FAMILIES, family
from tests.support.models.tiny import tiny_policy

SCALE = 0.3
CAPPED = {"Gemma2"}
"""Families whose attention has a soft cap, which is refused."""


def written_out(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    """softmax(scale Q K^T) V with keys and values repeated for the heads that share them."""
    group = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(group, 1) for each in (key, value))
    scores = SCALE * query @ key.transpose(2, 3)
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1) @ value


@st.composite
def masks(draw: st.DrawFn) -> torch.Tensor | None:
    """Causal masks behind prompts padded on the right, with a window, of packed sequences; or none."""
    rows, tokens, before = draw(st.integers(1, 3)), draw(st.integers(2, 9)), draw(st.integers(0, 6))
    kind = draw(st.sampled_from(["none", "prompts", "window", "packed"]))
    if kind == "none":
        return None
    columns = torch.arange(before + tokens)
    place = torch.arange(tokens)[:, None] + before
    seen = columns <= place
    if kind == "window":
        seen = seen & (columns > place - draw(st.integers(1, 4)))
    if kind == "packed" and before == 0:
        edge = draw(st.integers(0, tokens))
        seen = seen & ((columns < edge) == (place < edge))
    mask = seen.expand(rows, 1, -1, -1).clone()
    if kind == "prompts":
        for row in range(rows):
            mask[row, 0, :, draw(st.integers(0, before)) : before] = False
    return mask


@settings(max_examples=60)
@given(mask=masks(), scores=st.integers(1, 200), group=st.integers(1, 3), seed=st.integers(0, 9))
def test_it_is_the_written_out_attention_with_its_gradients(
    mask: torch.Tensor | None, scores: int, group: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows, tokens, columns = (2, 7, 7) if mask is None else (len(mask), *mask.shape[2:])
    size = (rows, 2 * group, tokens, 4), (rows, 2, columns, 4), (rows, 2, columns, 4)
    inputs = [torch.randn(each, generator=generator).requires_grad_() for each in size]
    towards = torch.randn(size[0], generator=generator)
    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocked_attention, "SCORES", scores)
        for computed in (attend(*inputs, mask, SCALE), written_out(*inputs, mask)):
            computed.backward(towards)
            results.append([computed.detach(), *(each.grad for each in inputs)])
            for each in inputs:
                each.grad = None
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_a_mask_for_all_sequences_and_tokens_that_see_nothing() -> None:
    """Padding sees nothing; it gets finite numbers, and no gradient goes from it to what others see."""
    query, key, value = (torch.randn(3, 2, 5, 4).requires_grad_() for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).tril().expand(1, 1, 5, 5).clone()
    torch.testing.assert_close(attend(query, key, value, mask, SCALE), written_out(query, key, value, mask))
    mask[..., 1, :] = False
    found = attend(query, key, value, mask, SCALE)
    found.sum().backward()
    assert found.isfinite().all() and query.grad is not None and query.grad.isfinite().all()


def blocked(name: str) -> PreTrainedModel:
    model = family(name, torch.bfloat16)
    use_attention(model, "blocked")
    return model


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in CAPPED])
def test_families_score_with_it_as_with_sdpa_up_to_rounding(name: str) -> None:
    """Responses to prompts of different lengths, one longer than a sliding window, and their gradients."""
    model, plain = blocked(name), family(name, torch.bfloat16)
    check_family(model)
    pairs = example_pairs(model)
    check_agreement(model, pairs)
    found = []
    for each in (model, plain):
        scorer = choose_scorer(each)
        assert scorer.name == "cached"
        logprobs, _ = scorer(pack_responses(pairs), 1.0)
        logprobs.sum().backward()
        gradient = torch.cat([weight.grad.flatten().float() for weight in each.parameters()])
        found.append((logprobs.detach(), gradient))
    (logprobs, gradient), (expected, other) = found
    assert (logprobs - expected).square().mean().sqrt() < 0.1
    assert torch.nn.functional.cosine_similarity(gradient, other, dim=0) > 0.98


def test_float32_and_single_tokens_are_left_to_sdpa() -> None:
    model, plain, row = family("Llama"), family("Llama"), torch.tensor([[3, 4, 5, 6]])
    use_attention(model, "blocked")
    assert torch.equal(model(row).logits, plain(row).logits)
    half, other = blocked("Llama"), family("Llama", torch.bfloat16)
    assert torch.equal(half(row[:, :1]).logits, other(row[:, :1]).logits)


def test_the_local_engine_samples_with_it_the_tokens_that_the_learner_scores() -> None:
    policy = Policy(blocked("Llama"), tiny_policy().tokenizer)
    engine = LocalEngine(policy, growing=True)
    assert engine.model.config._attn_implementation == "blocked_grouped"
    prompts, sampling = [(5, 6, 7), (5, 6), (8, 9, 10, 11)], Sampling(max_new_tokens=8)
    for _ in range(2):
        completions = engine.generate(prompts, sampling, range(3))
        pairs = [(prompt, done.token_ids) for prompt, done in zip(prompts, completions, strict=True)]
        for pair, done in zip(pairs, completions, strict=True):
            with torch.no_grad():
                logprobs, _ = choose_scorer(policy.model)(pack_responses([pair]), 1.0)
            apart = logprobs - torch.tensor(done.logprobs)
            assert apart.square().mean().sqrt() < 0.15, "rounding in bfloat16, of large weights"
        prompts = [prompt + response + (3, 4) for prompt, response in pairs]
    assert for_sampling("blocked") == "blocked"


def test_a_saved_policy_does_not_name_it(tmp_path: Path) -> None:
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    use_attention(policy.model, "blocked")
    save_policy(policy, tmp_path / "policy")
    assert "blocked" not in json.dumps(json.loads((tmp_path / "policy" / "config.json").read_text()))


def test_a_soft_cap_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"policy\.attention: is blocked, which omits the soft cap"):
        use_attention(family("Gemma2", torch.bfloat16, attn_logit_softcapping=50.0), "blocked")
