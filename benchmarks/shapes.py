"""Policies with random weights in the shapes of known models: for times and memory, which no weight changes.

Their tokenizer knows the numbers below 1000, a token each; the other ids of the vocabulary have no text.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, PretrainedConfig, Qwen2Config

from skillpress.models.policy import Policy
from skillpress.models.policy.scratch import word_tokenizer

SHAPES: dict[str, Callable[[], PretrainedConfig]] = {
    "smollm2-shape": lambda: LlamaConfig(
        hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        intermediate_size=1536, vocab_size=49_152, tie_word_embeddings=True, max_position_embeddings=8192,
    ),
    "qwen-shape": lambda: Qwen2Config(
        hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
        intermediate_size=8960, vocab_size=151_936, tie_word_embeddings=True, max_position_embeddings=32_768,
    ),
    "tiny-shape": lambda: LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=64, vocab_size=1024, tie_word_embeddings=True, max_position_embeddings=2048,
    ),
}  # fmt: skip
"""SmolLM2-135M, Qwen2.5-1.5B, and one for trials on a CPU."""


def random_policy(name: str, dtype: str) -> Policy:
    """The policy of a shape; the same weights each time on the same kind of machine."""
    tokenizer = word_tokenizer(tuple(str(number) for number in range(1000)))
    config = SHAPES[name]()
    config.pad_token_id = tokenizer.pad_token_id
    config.bos_token_id = config.eos_token_id = None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    model.generation_config = GenerationConfig(eos_token_id=None, pad_token_id=tokenizer.pad_token_id)
    return Policy(model.eval(), tokenizer)
