"""``policy.attention``: what each value changes, and what is refused. FlashAttention's kernels need a GPU."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from skillpress.core.engine import Sampling
from skillpress.core.errors import PolicyError, UserError
from skillpress.experiment.params import load_params
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy, load_policy, save_policy
from skillpress.models.policy.agreement import check_family
from skillpress.models.policy.attention import for_sampling, use_attention, with_masks
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import choose_scorer
from tests.support.models.families import FAMILIES, family
from tests.support.models.tiny import tiny_policy

WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")


def flagged(model: PreTrainedModel) -> PreTrainedModel:
    """The model in bfloat16, as if it computed with FlashAttention."""
    model = model.to(torch.bfloat16)
    model.config._attn_implementation_internal = "flash_attention_2"
    return model


def test_auto_changes_nothing_and_sdpa_replaces_eager_attention() -> None:
    model, row = family("Llama", attn_implementation="eager"), torch.tensor([[3, 4, 5]])
    before = model(row).logits
    use_attention(model, "auto")
    assert model.config._attn_implementation == "eager" and model(row).logits.equal(before)
    use_attention(model, "sdpa")
    assert model.config._attn_implementation == "sdpa"
    torch.testing.assert_close(model(row).logits, before)


@pytest.mark.parametrize("cap", [0.5, 50.0])
def test_a_policy_whose_attention_has_a_soft_cap_computes_it(cap: float, tmp_path: Path) -> None:
    """It computes what transformers writes out: scores become cap tanh(scores / cap)."""
    policy = tiny_policy()
    size = {"vocab_size": len(policy.tokenizer)}
    model = family("Gemma2", attn_logit_softcapping=cap, **size)
    save_policy(Policy(model, policy.tokenizer), tmp_path / "model")
    opened = load_policy(tmp_path / "model").model
    assert opened.config._attn_implementation == "eager"
    row = torch.arange(3, 40)[None]
    written_out = family("Gemma2", attn_logit_softcapping=cap, attn_implementation="eager", **size)
    torch.testing.assert_close(opened(row).logits, written_out(row).logits)
    uncapped = family("Gemma2", attn_logit_softcapping=None, attn_implementation="eager", **size)
    assert not torch.allclose(opened(row).logits, uncapped(row).logits)


def test_kernels_that_leave_out_a_soft_cap_are_refused() -> None:
    model = family("Gemma2", attn_logit_softcapping=50.0)
    with pytest.raises(
        PolicyError, match=r"policy\.attention: is sdpa, which omits the soft cap .* use auto"
    ):
        use_attention(model, "sdpa")


@WITHOUT_GPU
def test_flash_attention_without_a_gpu_is_refused() -> None:
    with pytest.raises(
        PolicyError, match=r"policy\.attention: is flash_attention_2, which runs only on CUDA"
    ):
        use_attention(family("Llama"), "flash_attention_2")


@pytest.mark.skipif(find_spec("flash_attn") is not None, reason="says what happens without the package")
def test_flash_attention_without_its_package_is_refused_before_any_stage() -> None:
    section = load_params().policy
    assert section.libraries() == {}
    flash = section.model_copy(update={"attention": "flash_attention_2"})
    with pytest.raises(
        UserError, match=r"policy\.attention: .* flash-attn is not installed here; pip install"
    ):
        flash.libraries()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_checked_in_float32_also_for_kernels_that_cannot_compute_it(name: str) -> None:
    model = flagged(family(name))
    assert choose_scorer(model).name == "packed"
    check_family(model)
    assert model.config._attn_implementation == "flash_attention_2", "the copy has changed, not the model"


def test_the_local_engine_samples_with_sdpa_what_it_would_without_flash_attention() -> None:
    plain = tiny_policy()
    plain.model.to(torch.bfloat16)
    flash = Policy(flagged(copy_model(plain.model)), plain.tokenizer)
    prompts, sampling = [(5, 6, 7), (5, 6), (8,)], Sampling(max_new_tokens=8)
    expected = LocalEngine(plain).generate(prompts, sampling, range(3))
    assert LocalEngine(flash).generate(prompts, sampling, range(3)) == expected
    assert flash.model.config._attn_implementation == "flash_attention_2"


def test_a_policy_that_only_samples_needs_no_flash_attention() -> None:
    assert [for_sampling(name) for name in ("auto", "sdpa", "flash_attention_2")] == ["auto", "sdpa", "sdpa"]
    assert not with_masks(family("Llama"))
