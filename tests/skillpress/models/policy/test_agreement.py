"""Log-probabilities of every family compared with its own forward pass, and the refusal of models that
disagree."""

from __future__ import annotations

import pytest
import torch
from transformers import PretrainedConfig, PreTrainedModel

from skillpress.core.errors import PolicyError
from skillpress.models.policy import scoring, token_scores
from skillpress.models.policy.agreement import check_agreement, check_family, disagreement, example_pairs
from skillpress.models.policy.logits import sliding_window
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from tests.support.models.families import FAMILIES, WINDOW, family

ROUNDING = 2e-5
"""Tolerance in nats, in float32."""


def row_by_row(model: PreTrainedModel, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> torch.Tensor:
    """The definition: the whole row through the model, and a softmax at every response token."""
    scores = []
    for prompt, response in pairs:
        logprobs = torch.log_softmax(model(torch.tensor([prompt + response])).logits[0].float(), dim=-1)
        scores += [logprobs[len(prompt) - 1 + i, token] for i, token in enumerate(response)]
    return torch.stack(scores)


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_and_gradients_are_the_models_own(name: str) -> None:
    """Includes a short prompt that is padded beside one that is longer than the sliding window."""
    model = family(name)
    pairs = example_pairs(model)
    expected = row_by_row(model, pairs)
    expected.sum().backward()
    gradients = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    model.zero_grad()
    found, _ = ResponseScorer(model)(pack_responses(pairs), 1.0)
    found.sum().backward()
    torch.testing.assert_close(found, expected, atol=ROUNDING, rtol=0)
    again = [weight.grad for weight in model.parameters() if weight.grad is not None]
    for gradient, own in zip(again, gradients, strict=True):
        torch.testing.assert_close(gradient, own, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ["Cohere2", "Gemma2", "Gemma3Text", "Mistral"])
def test_the_examples_hold_a_prompt_longer_than_the_sliding_window(name: str) -> None:
    model = family(name)
    assert sliding_window(model.config) == WINDOW
    lengths = {len(prompt) for prompt, _ in example_pairs(model)}
    assert max(lengths) > WINDOW > min(lengths)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["Llama", "Granite", "Gemma3Text"])
def test_a_family_that_agrees_is_accepted_in_both_types(name: str, dtype: torch.dtype) -> None:
    model = family(name, dtype)
    check_agreement(model, example_pairs(model))
    check_family(model)
    assert {weight.dtype for weight in model.parameters()} == {dtype}, "the comparison leaves it as it was"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["Granite", "Cohere", "Gemma2"])
def test_bare_output_embeddings_are_refused(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bare(config: PretrainedConfig, raw: torch.Tensor) -> torch.Tensor:
        return raw.float()

    monkeypatch.setattr(token_scores, "scaled_logits", bare)
    model = family(name, dtype)
    with pytest.raises(PolicyError, match=rf"policy\.model: .*{name}.* nats from the model's own"):
        check_agreement(model, example_pairs(model))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["Cohere2", "Gemma2", "Gemma3Text", "Mistral"])
def test_a_sliding_window_over_prompts_padded_on_the_right_is_refused(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the rounding of bfloat16 would hide it."""
    monkeypatch.setattr(scoring, "sliding_window", lambda config: None)
    model = family(name, dtype)
    assert disagreement(model, example_pairs(model)) > 0.05
    with pytest.raises(PolicyError, match="nats from the model's own"):
        check_family(model)


def test_a_model_with_dropout_on_disagrees_with_itself() -> None:
    model = family("GPT2", resid_pdrop=0.3).train()
    with pytest.raises(PolicyError, match="nats from the model's own"):
        check_agreement(model, example_pairs(model))
