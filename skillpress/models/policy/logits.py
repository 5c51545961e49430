"""Turn the result of the output embeddings into logits, as the model's own forward pass does.

A causal language model is more than its backbone and its output embeddings: some families multiply the logits
by a constant or cap them softly. The configuration of such a family says so, under the names below; the
families are not distinguished in any other way. ``agreement.py`` detects models whose logits need more than
this.
"""

from __future__ import annotations

import torch
from transformers import PretrainedConfig

FACTORS = {"logit_scale": 1, "logits_scaling": -1}
"""Configuration attribute to the power with which it applies: Cohere multiplies, Granite divides."""

SOFT_CAP = "final_logit_softcapping"
"""Configuration attribute with the c of c tanh(logits / c), in Gemma."""


def scaled_logits(config: PretrainedConfig, raw: torch.Tensor) -> torch.Tensor:
    """Float32 logits from the result of the output embeddings, for a model with this configuration."""
    # Before factors and cap, whose results bfloat16 would round again.
    logits = raw.float()
    config = config.get_text_config()
    for name, power in FACTORS.items():
        factor = getattr(config, name, None)
        if factor is not None:
            logits = logits * float(factor) ** power
    cap = getattr(config, SOFT_CAP, None)
    return logits if cap is None else torch.tanh(logits / cap) * cap


def sliding_window(config: PretrainedConfig) -> int | None:
    """Number of tokens that the layers with a sliding window see; None if every layer sees all tokens."""
    config = config.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    slides = kinds is None or "sliding_attention" in kinds
    return int(window) if window is not None and slides else None
