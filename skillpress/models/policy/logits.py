"""From what the output embeddings give to logits, as the model's own forward pass makes them.

A causal language model is more than its backbone and its output embeddings: some families multiply
the logits by a constant or cap them softly. Where a family does so its configuration says it, under
the names below; nothing else tells the families apart. Models whose logits need more than this are
found out by ``agreement.py``.
"""

from __future__ import annotations

import torch
from transformers import PretrainedConfig

FACTORS = {"logit_scale": 1, "logits_scaling": -1}
"""Configuration attribute to the power it enters with: Cohere multiplies, Granite divides."""

SOFT_CAP = "final_logit_softcapping"
"""c of c tanh(logits / c), in Gemma."""


def scaled_logits(config: PretrainedConfig, raw: torch.Tensor) -> torch.Tensor:
    """Float32 logits from what the output embeddings of a model with this configuration gave."""
    logits = raw.float()
    config = config.get_text_config()
    for name, power in FACTORS.items():
        factor = getattr(config, name, None)
        if factor is not None:
            logits = logits * float(factor) ** power
    cap = getattr(config, SOFT_CAP, None)
    return logits if cap is None else torch.tanh(logits / cap) * cap


def sliding_window(config: PretrainedConfig) -> int | None:
    """Tokens that the layers with a sliding window see; None where every layer sees everything."""
    config = config.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    slides = kinds is None or "sliding_attention" in kinds
    return int(window) if window is not None and slides else None
