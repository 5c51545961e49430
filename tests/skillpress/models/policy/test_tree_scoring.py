"""The tree scorer compared with each decision by itself, and FlexAttention's form with the dense one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from skillpress.core.chains import Pairs
from skillpress.models.policy import tree_attention
from skillpress.models.policy.attention import apply_soft_cap, use_attention
from skillpress.models.policy.scorers import checkpoint_layers, choose_scorer
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.models.policy.tree_scoring import TreeRows, TreeScorer, why_not
from tests.support.models.families import FAMILIES, family
from tests.support.models.tree_gradients import Pair, branches, scored

WINDOWED = ["Cohere2", "Gemma2", "Gemma3Text", "Mistral"]
AS_BLOCKS = [name for name in FAMILIES if name not in ("GPT2", "Gemma2")]
"""Families whose layers take block masks: GPT-2's do not, and a soft cap needs the written-out attention."""


@pytest.fixture
def restored() -> Iterator[None]:
    """transformers' own sdpa afterwards."""
    yield
    AttentionInterface.register("sdpa", sdpa_attention_forward)


def made(name: str) -> PreTrainedModel:
    """A model in float64, where only a mistake is larger than 1e-6."""
    model = family(name, torch.float64)
    apply_soft_cap(model)
    return model


def by_itself(model: PreTrainedModel, rows: list[Pair]) -> tuple[torch.Tensor, torch.Tensor]:
    """The same by the model's own pass over each decision alone."""
    model.zero_grad()
    parts = []
    for prompt, response in rows:
        logits = model(torch.tensor([prompt + response]), use_cache=False).logits[0, len(prompt) - 1 : -1]
        logprobs = torch.log_softmax(logits / 0.8, -1)
        parts.append(logprobs.gather(1, torch.tensor(response)[:, None])[:, 0])
    logprobs = torch.cat(parts)
    (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
    found = torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
    return logprobs.detach(), found / found.abs().max()


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_scores_and_gradients_are_those_of_a_pass_per_decision(name: str, checkpointing: bool) -> None:
    model = made(name)
    rows = branches(model)
    logprobs, gradients = by_itself(model, rows)
    if checkpointing:
        checkpoint_layers(model)
    found, slopes = scored(TreeScorer(model), rows)
    torch.testing.assert_close(found.double(), logprobs.double(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(slopes, gradients, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", WINDOWED)
def test_a_window_counts_positions_of_the_sequence_and_not_places_in_the_row(name: str) -> None:
    """The rows hold longer trees than the window, and one response lies behind another."""
    model = made(name)
    rows = branches(model)
    found, _ = scored(TreeScorer(model), rows)
    model.config.get_text_config().sliding_window = 64
    wide, _ = scored(TreeScorer(model), rows)
    assert (found - wide).abs().max() > 1e-3


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("name", AS_BLOCKS)
def test_flex_attention_over_blocks_computes_what_dense_masks_do(name: str) -> None:
    """torch has no backward pass for it on CPUs. One tree is wider than a block, one response lies in the
    middle of it."""
    model = family(name, torch.float64, max_position_embeddings=512).requires_grad_(False)
    draw = np.random.default_rng(0)
    long = tuple(draw.integers(3, 59, 300).tolist())
    rows = [*branches(model), (long, (4, 5, 6)), (long, (7, 8)), (long[:200], (9, 9))]
    with torch.no_grad():
        dense, _ = TreeScorer(model)(pack_responses(rows), 0.8)
        blocks, _ = TreeScorer(model, blocks=True)(pack_responses(rows), 0.8)
        cached, _ = ResponseScorer(model)(pack_responses(rows), 0.8)
    torch.testing.assert_close(blocks, dense, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(blocks, cached, atol=1e-6, rtol=1e-6)


@pytest.mark.usefixtures("restored")
def test_everything_else_is_computed_by_sdpa_as_before() -> None:
    model, row = family("Llama"), torch.tensor([[3, 4, 5, 6]])
    before = model(row).logits
    tree_attention.register()
    assert torch.equal(model(row).logits, before)


@pytest.mark.parametrize("window", [None, 3, 150, 400])
def test_blocks_that_are_left_out_see_nothing_and_whole_ones_see_everything(window: int | None) -> None:
    draw = np.random.default_rng(1)
    stems = [tuple(draw.integers(0, 9, length).tolist()) for length in (5, 90, 260, 300)]
    rows = [(stem, tuple(draw.integers(0, 9, 60).tolist())) for stem in stems for _ in range(3)]
    trees = TreeRows.of(Pairs.of(rows), None)
    depth, ends = torch.from_numpy(trees.depth[0]), torch.from_numpy(trees.ends[0])
    mask = tree_attention.block_masks(trees, depth, ends, window)[-1]
    place = torch.arange(len(ends))
    seen = (place <= place[:, None]) & (place[:, None] < ends)
    if window is not None:
        seen &= depth[:, None] - depth < window
    by_block = seen.unflatten(0, (-1, tree_attention.BLOCK)).unflatten(2, (-1, tree_attention.BLOCK))
    some, whole = by_block.any(3).any(1), by_block.all(3).all(1)
    partly, wholly = (torch.zeros_like(some) for _ in range(2))
    assert mask.full_kv_indices is not None and mask.full_kv_num_blocks is not None
    for row in range(len(some)):
        partly[row, mask.kv_indices[0, 0, row, : mask.kv_num_blocks[0, 0, row]].long()] = True
        wholly[row, mask.full_kv_indices[0, 0, row, : mask.full_kv_num_blocks[0, 0, row]].long()] = True
    assert (
        not (some & ~(partly | wholly)).any() and not (wholly & ~whole).any() and not (partly & wholly).any()
    )
    if window is None:
        assert torch.equal(partly | wholly, some)
    assert wholly.any() or (window or 400) < 400


def test_dense_rows_are_as_wide_as_the_widest_tree_and_full_again() -> None:
    rows = [((1,) * 8, (2, 3)), ((1,) * 8, (4, 5)), ((6,) * 4, (7,)), ((8,) * 4, (7, 7))]
    trees = TreeRows.of(Pairs.of(rows), 20)
    assert trees.tokens.shape == (2, 10)
    assert trees.tokens[0].tolist() == [1] * 8 + [2, 4]
    assert trees.ends[0].tolist() == [10] * 8 + [9, 10]
    assert sorted(trees.tokens[1].tolist()) == [0, 6, 6, 6, 6, 7, 8, 8, 8, 8]


def test_dense_rows_have_no_more_places_than_the_pass_counted() -> None:
    """A tree of 6 tokens and one of 4 would fill two rows of 6; 10 places are one row."""
    pairs = Pairs.of([((1,) * 5, (2, 3)), ((4,) * 3, (5, 6))])
    assert TreeRows.of(pairs, 12).tokens.shape == (2, 6)
    assert TreeRows.of(pairs, 11).tokens.shape == (1, 10)


def test_trees_score_with_blocked_attention_too() -> None:
    model, plain = (family("Llama", torch.bfloat16) for _ in range(2))
    use_attention(model, "blocked")
    rows = branches(model)
    (found, slopes), (expected, others) = (scored(TreeScorer(each), rows) for each in (model, plain))
    assert (found - expected).square().mean().sqrt() < 0.1
    assert torch.nn.functional.cosine_similarity(slopes.float(), others.float(), dim=0) > 0.98


def test_a_model_for_which_trees_are_wrong_keeps_the_other_scorer_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = family("Qwen2")
    model.config.layer_types = ["linear_attention", "full_attention"]
    checkpoint_layers(model)
    with caplog.at_level(logging.INFO):
        assert choose_scorer(model).name == "packed"
    assert "linear_attention, which have no mask over trees" in caplog.text


def test_reasons_on_a_gpu() -> None:
    wide: dict[str, Any] = {"head_dim": 16}
    assert why_not(family("Llama", **wide), blocks=True) is None
    assert "fewer than the 16" in str(why_not(family("Llama"), blocks=True))
    assert "'eager'" in str(why_not(made("Gemma2"), blocks=True))
    assert "block masks" in str(why_not(family("GPT2"), blocks=True))
    dropping = family("Llama", attention_dropout=0.1, **wide)
    assert why_not(dropping, blocks=True) is None, "in eval mode nothing is dropped"
    assert "dropout" in str(why_not(dropping.train(), blocks=True))
