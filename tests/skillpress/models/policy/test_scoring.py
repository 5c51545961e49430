"""Shared-prompt scoring compared with the model run on each row separately."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from tests.support.models.tiny import tiny_policy

tokens = st.lists(st.integers(2, 51), min_size=1, max_size=5).map(tuple)
prompts = st.sampled_from([(3,), (3, 4), (9, 8, 7, 6), (5, 5, 5, 5, 5)])
pairs = st.lists(st.tuples(prompts, tokens), min_size=1, max_size=6)


def row_by_row(model: torch.nn.Module, rows: list[tuple[tuple[int, ...], ...]], heat: float) -> torch.Tensor:
    """The definition: the whole row through the model, and a softmax at every response token."""
    scores = []
    for prompt, response in rows:
        logits = model(torch.tensor([prompt + response])).logits[0] / heat
        logprobs = torch.log_softmax(logits, dim=-1)
        scores += [logprobs[len(prompt) - 1 + i, token] for i, token in enumerate(response)]
    return torch.stack(scores)


@settings(max_examples=25)
@given(pairs, st.sampled_from([0.5, 1.0]))
def test_scores_and_gradients_are_those_of_every_row_by_itself(
    rows: list[tuple[tuple[int, ...], ...]], temperature: float
) -> None:
    model = tiny_policy().model
    weights = torch.linspace(-1, 1, sum(len(response) for _, response in rows))
    expected = row_by_row(model, rows, temperature)
    (expected * weights).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    found, _ = ResponseScorer(model)(pack_responses(rows), temperature)
    (found * weights).sum().backward()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-4)


def test_every_different_prompt_is_run_once_and_logits_are_computed_for_responses_only() -> None:
    rows = [((3, 4, 5), (6, 7)), ((3, 4, 5), (8,)), ((9,), (1, 2, 3))]
    responses = pack_responses(rows)
    assert responses.prompts.shape == (2, 3) and responses.continuations.shape == (3, 2)
    assert len(responses.predicting) == len(responses.targets) == 6


def test_entropy_is_that_of_the_tempered_distribution() -> None:
    model = tiny_policy().model
    _, entropies = ResponseScorer(model)(pack_responses([((3, 4), (5,))]), 0.5)
    probabilities = torch.softmax(model(torch.tensor([[3, 4]])).logits[0, -1] / 0.5, dim=0)
    torch.testing.assert_close(entropies[0], -(probabilities * probabilities.log()).sum())


def test_a_second_pass_made_only_to_keep_step_with_other_ranks_changes_no_score() -> None:
    model = tiny_policy().model
    responses = pack_responses([((3, 4, 5), (6,)), ((9,), (1,))])
    widened = responses.with_continuations()
    assert responses.continuations.shape == (2, 0) and widened.continuations.shape == (2, 1)
    alone, _ = ResponseScorer(model)(responses, 1.0)
    in_step, _ = ResponseScorer(model)(widened, 1.0)
    torch.testing.assert_close(in_step, alone)
