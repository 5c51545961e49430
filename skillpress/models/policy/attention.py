"""How a policy computes attention: ``policy.attention``.

    auto                 what transformers chooses for the model, sdpa for nearly all of them; where attention
                         has a soft cap (Gemma 2), transformers' eager one, since its sdpa drops the cap
    sdpa                 torch's own kernels, with masks of any form
    blocked              matrix products over blocks of queries, for bfloat16 on CPUs
                         (``blocked_attention.py``); the same masks
    flash_attention_2    the kernels of the package ``flash-attn``: half types on CUDA GPUs alone, and no mask
                         but the beginning and end of sequences

FlashAttention takes no mask over prompts that are padded and shared. So the learner then scores whole
sequences, packed into one row (``packing.py``), and computes a shared prompt once for every response. It
takes no mask over a cache of fixed shape either. So the local engine, whose tokens are sampled one at a time,
keeps sdpa; on a GPU it does so in place of ``blocked`` too. vLLM chooses its kernels itself. **FlashAttention
was never run here**, for want of GPUs: its packed rows were compared with sdpa's masks.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from skillpress.core.errors import PolicyError
from skillpress.models.policy import blocked_attention

AUTO = "auto"
BLOCKED = blocked_attention.NAME
FLASH = "flash_attention_2"
SOFT_CAP = "attn_logit_softcapping"


def use_attention(model: PreTrainedModel, attention: str) -> None:
    """Make the model compute attention in this way; ``auto`` changes nothing.

    Raises:
        PolicyError: this machine or this model has no such attention.
    """
    if attention == AUTO:
        return
    if has_soft_cap(model):
        raise PolicyError(
            f"policy.attention: is {attention}, which omits the soft cap of the attention of "
            f"{type(model).__name__}; use auto"
        )
    if attention == FLASH and not torch.cuda.is_available():
        raise PolicyError(
            f"policy.attention: is {FLASH}, which runs only on CUDA GPUs, but torch sees none here; use auto "
            "or sdpa"
        )
    if attention == BLOCKED:
        blocked_attention.register()
    try:
        model.set_attn_implementation(attention)
    except (ImportError, ValueError) as error:
        raise PolicyError(
            f"policy.attention: {type(model).__name__} cannot compute it as {attention!r} here: {error}; "
            "use auto"
        ) from error


def has_soft_cap(model: PreTrainedModel) -> bool:
    """Whether scores are squeezed before the softmax, which transformers' kernels do not do."""
    return bool(getattr(model.config.get_text_config(), SOFT_CAP, None))


def apply_soft_cap(model: PreTrainedModel) -> None:
    """Apply attention soft-capping if the model's config asks for it; leave other models unchanged."""
    if has_soft_cap(model):
        # transformers' other kernels drop the cap.
        model.set_attn_implementation("eager")


def for_sampling(attention: str) -> str:
    """The attention of a policy that only samples, in the engines to which ``policy.attention`` applies."""
    return "sdpa" if attention == FLASH else attention


def leave_blocks_on_gpu(model: PreTrainedModel) -> None:
    """Switch a sampling model on a GPU from blocks, which are for CPUs, to sdpa."""
    if model.config._attn_implementation == BLOCKED and model.device.type != "cpu":
        model.set_attn_implementation("sdpa")


def uses_flash(model: PreTrainedModel) -> bool:
    """Whether the model's attention supports no masks except the edges of sequences."""
    return "flash" in str(model.config._attn_implementation)


def with_masks(model: PreTrainedModel) -> bool:
    """Switch a model whose attention supports no masks to sdpa; returns whether it was changed."""
    changed = uses_flash(model)
    if changed:
        model.set_attn_implementation("sdpa")
    return changed
