"""The packed scorer compared with the cached one and with separate rows; gradient checkpointing."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from skillpress.core.chains import Pairs
from skillpress.core.errors import PolicyError
from skillpress.models.policy.agreement import check_agreement, check_family, example_pairs
from skillpress.models.policy.packing import PackedScorer, PackedSequences, first_fit
from skillpress.models.policy.scorers import Scorer, checkpoint_layers, choose_scorer
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from tests.support.models.families import FAMILIES, family

Pair = tuple[tuple[int, ...], tuple[int, ...]]

tokens = st.lists(st.integers(3, 59), min_size=1, max_size=5).map(tuple)
prompts = st.sampled_from([(3,), (3, 4), (9, 8, 7, 6), (5,) * 11])
pairs = st.lists(st.tuples(prompts, tokens), min_size=1, max_size=7)


def scored(scorer: Scorer, rows: list[Pair]) -> list[torch.Tensor]:
    """[log-probabilities, entropies, gradients of the weights]."""
    scorer.model.zero_grad()
    logprobs, entropies = scorer(pack_responses(rows), 0.8)
    (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
    gradients = [weight.grad.clone() for weight in scorer.model.parameters() if weight.grad is not None]
    return [logprobs.detach(), entropies, *gradients]


def assert_equal(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5 * (1 + float(theirs.abs().max())), rtol=0)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3"])
@settings(deadline=None, max_examples=8)
@given(rows=pairs)
def test_scores_and_gradients_are_those_of_the_cached_scorer(
    name: str, checkpointing: bool, rows: list[Pair]
) -> None:
    model = family(name)
    expected = scored(ResponseScorer(model), rows)
    if checkpointing:
        checkpoint_layers(model)
    assert_equal(scored(PackedScorer(model), rows), expected)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_scores_as_its_own_forward_pass_does(name: str, attention: str) -> None:
    """Includes sliding windows: packing keeps a sequence's tokens next to each other."""
    model = family(name, attn_implementation=attention)
    rows = example_pairs(model)
    expected = scored(ResponseScorer(model), rows)
    checkpoint_layers(model)
    assert_equal(scored(PackedScorer(model), rows), expected)
    check_agreement(model, rows)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(9, 20))
def test_first_fit_lays_no_piece_over_another_and_leaves_rows_at_least_half_full(
    sizes: list[int], width: int
) -> None:
    rows, starts = first_fit(sizes, width)
    cells = Counter(
        (row, start + offset)
        for row, start, size in zip(rows, starts, sizes, strict=True)
        for offset in range(size)
    )
    assert set(cells.values()) == {1}
    assert all(column < width for _, column in cells)
    filled = Counter(row for row, _ in cells)
    assert sorted(filled) == list(range(len(filled)))
    assert sum(used * 2 <= width for used in filled.values()) <= 1


@settings(deadline=None, max_examples=25)
@given(pairs, st.booleans())
def test_packed_tokens_are_the_sequences_with_positions_from_0(rows: list[Pair], one_row: bool) -> None:
    packed = PackedSequences.of(pack_responses(rows), one_row)
    whole = [prompt + response[:-1] for prompt, response in rows]
    if one_row:  # a pair that a later pair extends is contained in the later one
        assert packed.tokens.shape == (1, sum(len(whole[chain[-1]]) for chain in Pairs.of(rows).chains)), (
            "no padding"
        )
    flat, positions, place = packed.tokens.flatten(), packed.positions.flatten(), 0
    for (prompt, response), sequence in zip(rows, whole, strict=True):
        last = int(packed.predicting[place])
        start = last - len(prompt) + 1
        assert tuple(flat[start : start + len(sequence)].tolist()) == sequence
        assert positions[start : start + len(sequence)].tolist() == list(range(len(sequence)))
        expected = list(range(last, last + len(response)))
        assert packed.predicting[place : place + len(response)].tolist() == expected
        place += len(response)


def test_a_single_row_as_flash_attention_wants_it_gives_the_same_scores() -> None:
    """The mask is sdpa's, because FlashAttention needs a GPU."""
    model, rows = family("Llama"), example_pairs(family("Llama"))
    expected = scored(PackedScorer(model), rows)
    assert_equal(scored(PackedScorer(model, one_row=True), rows), expected)


def layer_passes(model: PreTrainedModel, rows: list[Pair]) -> int:
    """How often the first layer is computed in a forward and backward pass."""
    count = 0

    def hook(*arguments: object) -> None:
        nonlocal count
        count += 1

    layer = next(module for module in model.modules() if isinstance(module, GradientCheckpointingLayer))
    inner = next(layer.children())
    with inner.register_forward_hook(hook):
        scored(choose_scorer(model), rows)
    return count


def test_checkpointed_layers_really_forget_and_compute_again() -> None:
    """A model in eval() mode would silently keep its activations."""
    model = family("Llama")
    rows: list[Pair] = [((3, 4), (5,))]
    assert layer_passes(model, rows) == 1
    checkpoint_layers(model)
    assert layer_passes(model, rows) == 2


def test_checkpointing_draws_no_dropout() -> None:
    model = family("GPT2", resid_pdrop=0.3, attn_pdrop=0.3)
    rows = example_pairs(model)
    expected = scored(ResponseScorer(model), rows)
    checkpoint_layers(model)
    assert_equal(scored(PackedScorer(model), rows), expected)


def test_the_cached_scorer_refuses_gradient_checkpointing_and_the_choice_avoids_it() -> None:
    model = family("Llama")
    assert choose_scorer(model).name == "cached"
    check_family(model)
    cached = ResponseScorer(model)
    model.gradient_checkpointing_enable()
    with pytest.raises(PolicyError, match=r"gradient checkpointing on.*tree scorer"):
        cached(pack_responses([((3,), (4,))]), 1.0)
    assert choose_scorer(model).name == "tree"
    check_family(model)


@pytest.mark.parametrize(
    ("attention", "name"),
    [("sdpa", "cached"), ("eager", "cached"), ("flex_attention", "packed"), ("flash_attention_2", "packed")],
)
def test_the_scorer_goes_by_what_the_attention_kernel_takes(attention: str, name: str) -> None:
    model = family("Llama")
    model.config._attn_implementation_internal = attention  # the kernels themselves need a GPU
    assert choose_scorer(model).name == name


def test_a_model_without_layers_to_checkpoint_is_refused() -> None:
    model = family("Llama")
    model.supports_gradient_checkpointing = False
    with pytest.raises(PolicyError, match=r"training\.gradient_checkpointing: LlamaForCausalLM"):
        checkpoint_layers(model)
