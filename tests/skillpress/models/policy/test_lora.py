"""Low-rank changes: no change at the start, W + alpha/r B A afterwards, and files that other programs
load."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import peft
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedModel

from skillpress.core.errors import PolicyError
from skillpress.experiment.model_shapes import ModelShape
from skillpress.models.policy import load_policy, save_policy, token_scores
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from tests.support.models.families import FAMILIES, family
from tests.support.models.tiny import tiny_policy

TOKENS = torch.tensor([[3, 14, 15, 9, 26, 5]])
ROWS = [(), (26, 3, 59)]
"""Tokens whose rows of the embeddings are trained too: none, or two of those above and one more."""


def whole(weight: torch.Tensor) -> torch.Tensor:
    """The weight itself: nothing is partitioned here."""
    return weight.detach()


@torch.no_grad()
def logits(model: PreTrainedModel) -> torch.Tensor:
    found: torch.Tensor = model(TOKENS).logits
    return found


def train(model: PreTrainedModel, seed: int = 1) -> None:
    """A substitute for training: it sets B, and trained rows, to random values."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if "lora_B" in name or "trained_rows" in name:
            weight.data.copy_(torch.empty(weight.shape).normal_(0, 0.3, generator=generator))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", FAMILIES)
def test_it_starts_as_the_start_policy_exactly(name: str, rows: Sequence[int]) -> None:
    model = family(name)
    before = logits(model)
    LoraAdapter(model, 2, 8, seed=0, rows=rows)
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", FAMILIES)
def test_merged_weights_are_the_policy_under_the_names_of_the_start_policy(
    name: str, rows: Sequence[int]
) -> None:
    model, plain = family(name), family(name)
    adapter = LoraAdapter(model, 2, 8, seed=0, rows=rows)
    train(model)
    assert not torch.allclose(logits(model), logits(plain), atol=1e-2)
    plain.load_state_dict(adapter.merged(whole))  # refuses other names
    torch.testing.assert_close(logits(plain), logits(model), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", FAMILIES)
def test_switched_off_it_is_the_start_policy_exactly_and_afterwards_what_it_was(
    name: str, rows: Sequence[int]
) -> None:
    model = family(name)
    before = logits(model)
    adapter = LoraAdapter(model, 2, 8, seed=0, rows=rows)
    train(model)
    changed = logits(model)
    with adapter.switched_off():
        assert torch.equal(logits(model), before)
    assert torch.equal(logits(model), changed)


@settings(max_examples=25)
@given(rank=st.integers(1, 8), alpha=st.integers(1, 32), seed=st.integers(0, 2**40))
def test_a_merged_weight_is_w_plus_alpha_over_r_b_a(rank: int, alpha: int, seed: int) -> None:
    model = tiny_policy().model
    base = copy.deepcopy(model.state_dict())
    adapter = LoraAdapter(model, rank, alpha, seed)
    train(model, seed)
    adapter.merged(whole)  # merging changes nothing
    merged, factors = adapter.merged(whole), adapter.saved(whole).tensors
    for name, weight in base.items():
        stem = f"base_model.model.{name.removesuffix('.weight')}"
        changed = weight
        if f"{stem}.lora_A.weight" in factors:
            a, b = (factors[f"{stem}.lora_{factor}.weight"] for factor in "AB")
            assert a.shape == (rank, weight.shape[1]) and b.shape == (weight.shape[0], rank)
            changed = weight + (alpha / rank) * (b @ a)
        torch.testing.assert_close(merged[name], changed)
    assert len(factors) == 2 * 2 * 7, "two layers of seven linear ones; neither embeddings nor head"


def test_in_bfloat16_it_starts_as_the_start_policy_and_small_changes_reach_the_merged_weights() -> None:
    """The changes are far below the last bit of most weights: rounded to the nearest, hardly any weight would
    move."""
    model = family("Llama", torch.bfloat16)
    name = "model.layers.0.mlp.up_proj"
    base = model.state_dict()[f"{name}.weight"].clone()
    adapter = LoraAdapter(model, rank=2, alpha=2, seed=0)
    assert torch.equal(adapter.merged(whole)[f"{name}.weight"], base)
    layer = model.get_submodule(name)
    layer.lora_A["default"].weight.data.fill_(1.0)  # type: ignore[union-attr, index]
    layer.lora_B["default"].weight.data.fill_(2.0**-13)  # type: ignore[union-attr, index]
    merged = adapter.merged(whole)[f"{name}.weight"]
    assert merged.dtype == torch.bfloat16
    change = 2 * 2.0**-13
    nearest = (base.float() + change).bfloat16().float() - base.float()
    assert float(nearest.mean()) < 0.5 * change
    assert float((merged.float() - base.float()).mean()) == pytest.approx(change, rel=0.4)


def test_what_is_trained_are_the_changes_alone_as_many_as_the_dry_run_says() -> None:
    model = family("Llama")
    shape = ModelShape(
        0, layers=2, hidden=16, kv_heads=1, head_size=8, vocabulary=60, heads=2, intermediate=32
    )
    LoraAdapter(model, rank=3, alpha=8, seed=0)
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    assert all("lora_" in name for name in trained)
    expected = 3 * shape.layers * sum(rows + columns for rows, columns in shape.linear_layers)
    assert sum(weight.numel() for weight in trained.values()) == expected


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("first", 0), ("again", 0), ("other", 1)):
        LoraAdapter(tiny_policy().model, 4, 8, seed).saved(whole).save(tmp_path / name)
    first, again, other = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("first", "again", "other")
    )
    assert first.keys() == {"adapter_config.json", "adapter_model.safetensors"}
    assert first == again
    assert first["adapter_model.safetensors"] != other["adapter_model.safetensors"]


def test_adding_it_draws_no_number_that_anything_else_would_get() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    LoraAdapter(tiny_policy().model, 4, 8, seed=0)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("rows", [(), (3, 5, 52)])
def test_peft_loads_the_saved_adapter_over_the_start_policy(tmp_path: Path, rows: Sequence[int]) -> None:
    save_policy(tiny_policy(), tmp_path / "start")
    policy = load_policy(tmp_path / "start")
    adapter = LoraAdapter(policy.model, 4, 8, seed=0, rows=rows)
    train(policy.model)
    save_policy(policy, tmp_path / "trained", adapter.merged(whole), adapter.saved(whole))
    start = load_policy(tmp_path / "start").model
    loaded = peft.PeftModel.from_pretrained(start, tmp_path / "trained" / "adapter")
    merged = load_policy(tmp_path / "trained").model
    assert type(merged) is type(tiny_policy().model), "the folder is an ordinary model's"
    torch.testing.assert_close(logits(loaded), logits(merged), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits(merged), logits(policy.model), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_trained_rows_are_those_of_the_tables_and_no_other_row_changes(tied: bool, tmp_path: Path) -> None:
    """Tied embeddings have one matrix of rows, untied ones two. peft reads them beside the adapter."""
    model, plain = (family("Llama", tie_word_embeddings=tied) for _ in range(2))
    adapter = LoraAdapter(model, 2, 8, seed=0, rows=(26, 3))
    train(model)
    trained = {name: weight for name, weight in model.named_parameters() if "trained_rows" in name}
    assert [tuple(weight.shape) for weight in trained.values()] == [(2, 16)] * (1 if tied else 2)
    assert all(weight.requires_grad for weight in trained.values())
    merged, start = adapter.merged(whole), plain.state_dict()
    assert (merged["lm_head.weight"] is merged["model.embed_tokens.weight"]) == tied
    for name, module in (("model.embed_tokens", model.get_input_embeddings()), ("lm_head", model.lm_head)):
        changed = (merged[f"{name}.weight"] != start[f"{name}.weight"]).any(1)
        assert changed.nonzero().flatten().tolist() == [3, 26]
        if not (tied and name == "lm_head"):
            assert torch.equal(merged[f"{name}.weight"][[3, 26]], module.trained_rows)
    adapter.saved(whole).save(tmp_path / "adapter")
    loaded = peft.PeftModel.from_pretrained(plain, tmp_path / "adapter")
    torch.testing.assert_close(logits(loaded), logits(model), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("name", ["Llama", "Gemma2", "Gemma3Text"])
def test_their_gradients_are_those_of_the_whole_tables(
    name: str, chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables' gradients come from the model's own forward pass in float64. The scorer computes logits in
    one piece or by chunks of two tokens."""
    ids = [3, 9, 26]
    if chunk:
        monkeypatch.setattr(token_scores, "CHUNK_LOGITS", chunk * 60)
    model, plain = (family(name, torch.float64, tie_word_embeddings=False) for _ in range(2))
    LoraAdapter(model, 2, 8, seed=0, rows=ids)
    responses = pack_responses([((3, 14), (15, 9, 26)), ((5, 3), (9, 9))])
    logprobs, _ = ResponseScorer(model)(responses, 0.7)
    factors = torch.linspace(-1, 1, len(logprobs))
    (factors * logprobs).sum().backward()
    own = []
    for row in ((3, 14, 15, 9, 26), (5, 3, 9, 9)):
        all_of_them = torch.log_softmax(plain(torch.tensor([row])).logits[0].float() / 0.7, dim=-1)
        own += [all_of_them[place - 1, row[place]] for place in range(2, len(row))]
    (factors * torch.stack(own)).sum().backward()
    for module, table in (
        (model.get_input_embeddings(), plain.get_input_embeddings()),
        (model.get_output_embeddings(), plain.get_output_embeddings()),
    ):
        expected = table.weight.grad[ids]
        assert expected.abs().max() > 1e-3
        torch.testing.assert_close(module.trained_rows.grad, expected, atol=1e-5, rtol=1e-4)


def test_embeddings_that_do_more_than_look_rows_up_are_refused() -> None:
    model = family("Llama")
    model.get_input_embeddings().register_forward_hook(lambda module, arguments, output: output * 2)
    with pytest.raises(PolicyError, match=r"training\.lora.*LlamaForCausalLM.*domain_tokens"):
        LoraAdapter(model, 2, 8, seed=0, rows=(3,))
