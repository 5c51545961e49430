"""Tiny models of other families, with weights large enough to reveal a mistake in their logits."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel

WINDOW = 8
"""Number of tokens that a sliding window sees, if there is one."""

_SHAPE: dict[str, Any] = {
    "vocab_size": 60, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 64,
    "initializer_range": 0.4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {},
    "GPT2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "Granite": {"logits_scaling": 4.0},
    "Cohere": {"logit_scale": 0.25},
    "Cohere2": {
        "logit_scale": 0.25,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "Gemma2": {"final_logit_softcapping": 2.0, "sliding_window": WINDOW, "query_pre_attn_scalar": 8},
    "Gemma3Text": {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]},
    "Mistral": {"sliding_window": WINDOW},
}
"""Maps a family to the settings of its configuration besides the shape."""


def family(name: str, dtype: torch.dtype = torch.float32, **changes: Any) -> PreTrainedModel:
    """A model of this family with random weights."""
    config = getattr(transformers, f"{name}Config")(**{**_SHAPE, **FAMILIES[name], **changes})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.eval()
    return model
