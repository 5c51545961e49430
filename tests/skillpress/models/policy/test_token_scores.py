"""Scores by chunks compared with scores in one piece: log-probabilities, entropies and gradients."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from skillpress.models.policy import token_scores
from skillpress.models.policy.token_scores import TokenScores
from tests.support.models.families import FAMILIES, family

VOCABULARY = 60
ROUNDING = 2e-6
"""Tolerance in float32, for values of about 1."""


class Case:
    """Hidden states, targets and weights of a loss over them."""

    def __init__(self, tokens: int, seed: int, dtype: torch.dtype = torch.float32) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.hidden = torch.randn(tokens, 16, generator=draw).to(dtype)
        self.targets = torch.randint(VOCABULARY, (tokens,), generator=draw)
        self.weights = torch.randn(tokens, generator=draw)


def head_of(model: PreTrainedModel) -> nn.Linear:
    head = model.get_output_embeddings()
    assert isinstance(head, nn.Linear)
    return head


def in_chunks(model: PreTrainedModel, case: Case, heat: float, rows: int) -> list[torch.Tensor]:
    """[log-probabilities, entropies, gradient of hidden states, of the weight, of the bias if any]."""
    scores, hidden = TokenScores(model), case.hidden.clone().requires_grad_()
    before, token_scores.CHUNK_LOGITS = token_scores.CHUNK_LOGITS, rows * VOCABULARY
    try:
        logprobs, entropies = scores(hidden, case.targets, heat)
        assert not entropies.requires_grad
        (logprobs * case.weights).sum().backward()
    finally:
        token_scores.CHUNK_LOGITS = before
    gradients = [hidden.grad, *(parameter.grad for parameter in scores.parameters())]
    return [logprobs.detach(), entropies, *(gradient for gradient in gradients if gradient is not None)]


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from([*FAMILIES]),
    tokens=st.integers(1, 40),
    rows=st.integers(1, 41),
    heat=st.sampled_from([0.5, 1.0]),
    tied=st.booleans(),
    seed=st.integers(0, 99),
)
def test_chunks_of_any_size_change_nothing(
    name: str, tokens: int, rows: int, heat: float, tied: bool, seed: int
) -> None:
    """Covers the families whose logits are scaled and capped in different ways."""
    case = Case(tokens, seed)
    whole = in_chunks(family(name, tie_word_embeddings=tied), case, heat, tokens)
    pieces = in_chunks(family(name, tie_word_embeddings=tied), case, heat, rows)
    assert len(whole) == len(pieces) == 4
    for found, expected in zip(pieces, whole, strict=True):
        torch.testing.assert_close(found, expected, atol=ROUNDING * (1 + float(expected.abs().max())), rtol=0)


@pytest.mark.parametrize("name", ["Llama", "Granite", "Gemma2"])
def test_one_chunk_is_bit_for_bit_what_the_output_embeddings_and_a_softmax_give(name: str) -> None:
    model, case = family(name), Case(7, 0)
    logprobs, entropies, gradient, weight_gradient = in_chunks(copy.deepcopy(model), case, 0.7, 7)
    hidden = case.hidden.clone().requires_grad_()
    logits = head_of(model)(hidden)
    if name == "Granite":
        logits = logits * 4.0**-1
    if name == "Gemma2":
        logits = torch.tanh(logits / 2.0) * 2.0
    expected = torch.log_softmax(logits / 0.7, dim=-1)
    own = expected.gather(1, case.targets[:, None]).squeeze(1)
    (own * case.weights).sum().backward()
    assert torch.equal(logprobs, own) and torch.equal(entropies, -(expected.exp() * expected).sum(-1))
    own_weight = head_of(model).weight.grad
    assert hidden.grad is not None and own_weight is not None
    assert torch.equal(gradient, hidden.grad) and torch.equal(weight_gradient, own_weight)


def test_the_bias_of_output_embeddings_has_its_gradient_too() -> None:
    def with_bias() -> PreTrainedModel:
        model = family("Llama")
        head = nn.Linear(16, VOCABULARY)
        with torch.no_grad():
            head.weight.copy_(head_of(model).weight)
            head.bias.copy_(torch.linspace(-1, 1, VOCABULARY))
        model.set_output_embeddings(head)
        return model

    case = Case(11, 1)
    whole, pieces = (in_chunks(with_bias(), case, 1.0, rows) for rows in (11, 3))
    assert len(whole) == len(pieces) == 5
    for found, expected in zip(pieces, whole, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_chunks_in_bfloat16_round_their_gradient_once() -> None:
    """Hundreds of chunks summed in bfloat16 would differ by more than one rounding (2^-9)."""
    case = Case(400, 2, torch.bfloat16)
    *_, found = in_chunks(family("Llama", torch.bfloat16), case, 1.0, 1)
    exact = Case(400, 2)
    exact.hidden = case.hidden.float()
    *_, expected = in_chunks(family("Llama", torch.bfloat16).float(), exact, 1.0, 400)
    off = (found.float() - expected).norm() / expected.norm()
    assert found.dtype == torch.bfloat16 and float(off) < 2**-8 + 2**-9


def test_frozen_output_embeddings_get_no_gradient_and_hidden_states_do() -> None:
    model, case = family("Llama"), Case(9, 3)
    expected = in_chunks(family("Llama"), case, 1.0, 9)
    model.requires_grad_(False)
    found = in_chunks(model, case, 1.0, 2)
    assert len(found) == 3
    torch.testing.assert_close(found[2], expected[2], atol=1e-5, rtol=0)


def test_output_embeddings_that_are_more_than_a_matrix_are_called_as_they_are() -> None:
    class Doubled(nn.Module):
        def __init__(self, inner: nn.Linear) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = 2 * self.inner(hidden)
            return logits

    model, case = family("Llama"), Case(9, 4)
    weight = head_of(model).weight
    model.set_output_embeddings(Doubled(head_of(model)))
    logprobs, _ = TokenScores(model)(case.hidden, case.targets, 1.0)
    expected = torch.log_softmax(2 * functional.linear(case.hidden, weight), -1)
    torch.testing.assert_close(logprobs, expected.gather(1, case.targets[:, None]).squeeze(1))


def test_it_adds_no_parameter_to_the_model() -> None:
    model = family("Llama")
    owned = {id(parameter) for parameter in model.parameters()}
    assert {id(parameter) for parameter in TokenScores(model).parameters()} <= owned
