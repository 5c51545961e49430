"""Low-rank changes: no change at the start, W + alpha/r B A afterwards, and files that other programs
load."""

from __future__ import annotations

import copy
from pathlib import Path

import peft
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedModel

from skillpress.experiment.model_shapes import ModelShape
from skillpress.learn.training.lora import LoraAdapter
from skillpress.models.policy import load_policy, save_policy
from tests.support.models.families import FAMILIES, family
from tests.support.models.tiny import tiny_policy

TOKENS = torch.tensor([[3, 14, 15, 9, 26, 5]])


def whole(weight: torch.Tensor) -> torch.Tensor:
    """The weight itself: nothing is partitioned here."""
    return weight.detach()


@torch.no_grad()
def logits(model: PreTrainedModel) -> torch.Tensor:
    found: torch.Tensor = model(TOKENS).logits
    return found


def train(model: PreTrainedModel, seed: int = 1) -> None:
    """A substitute for training: it sets B to random values."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.copy_(torch.empty(weight.shape).normal_(0, 0.3, generator=generator))


@pytest.mark.parametrize("name", FAMILIES)
def test_it_starts_as_the_start_policy_exactly(name: str) -> None:
    model = family(name)
    before = logits(model)
    LoraAdapter(model, rank=2, alpha=8, seed=0)
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("name", FAMILIES)
def test_merged_weights_are_the_policy_under_the_names_of_the_start_policy(name: str) -> None:
    model, plain = family(name), family(name)
    adapter = LoraAdapter(model, rank=2, alpha=8, seed=0)
    train(model)
    assert not torch.allclose(logits(model), logits(plain), atol=1e-2)
    plain.load_state_dict(adapter.merged(whole))  # refuses other names
    torch.testing.assert_close(logits(plain), logits(model), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_switched_off_it_is_the_start_policy_exactly_and_afterwards_what_it_was(name: str) -> None:
    model = family(name)
    before = logits(model)
    adapter = LoraAdapter(model, rank=2, alpha=8, seed=0)
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


def test_peft_loads_the_saved_adapter_over_the_start_policy(tmp_path: Path) -> None:
    save_policy(tiny_policy(), tmp_path / "start")
    policy = load_policy(tmp_path / "start")
    adapter = LoraAdapter(policy.model, rank=4, alpha=8, seed=0)
    train(policy.model)
    save_policy(policy, tmp_path / "trained", adapter.merged(whole), adapter.saved(whole))
    start = load_policy(tmp_path / "start").model
    loaded = peft.PeftModel.from_pretrained(start, tmp_path / "trained" / "adapter")
    merged = load_policy(tmp_path / "trained").model
    assert type(merged) is type(tiny_policy().model), "the folder is an ordinary model's"
    torch.testing.assert_close(logits(loaded), logits(merged), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits(merged), logits(policy.model), atol=1e-5, rtol=1e-5)
