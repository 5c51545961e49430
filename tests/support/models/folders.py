"""Small model folders of the kinds found on hubs: each test names its own peculiarity.

The tokenizer is byte-level, so it can encode everything. Files besides the weights are written by hand, as
other programs and earlier versions of transformers write them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM, Gemma3Config, LlamaConfig, PretrainedConfig, PreTrainedModel

BOS, EOS, PAD, END, THINK, THINK_END = "<s>", "</s>", "<pad>", "<|im_end|>", "<think>", "</think>"
START = "<|im_start|>"
SPECIAL = (BOS, EOS, PAD, START, END)
"""Special tokens by their ids, from 0."""

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
THINKING = CHATML.replace("assistant\n' }}{% endif", "assistant\n<think>\n' }}{% endif")
"""Opens a thought, as the distillations of DeepSeek-R1 do."""
IN_PARTS = CHATML.replace(
    "message.content",
    "(message.content | selectattr('type', 'defined') | map(attribute='text') | join)",
)
"""Writes the text parts of a message, and nothing if its content is a text."""
DATED = "{{ '<|im_start|>system\nToday is ' + strftime_now('%d %b %Y') + '<|im_end|>\n' }}" + CHATML


SHAPE: dict[str, Any] = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "vocab_size": 280, "max_position_embeddings": 2048, "bos_token_id": 0, "eos_token_id": 1,
    "pad_token_id": None, "initializer_range": 0.4,
}  # fmt: skip
"""Configuration of a model."""


def llama(**changes: Any) -> PretrainedConfig:
    """A Llama of two layers."""
    return LlamaConfig(**{**SHAPE, **changes})


def gemma3() -> PretrainedConfig:
    """A multimodal Gemma 3, whose language model has its own configuration."""
    text = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 280, "max_position_embeddings": 2048,
        "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "initializer_range": 0.4,
        "query_pre_attn_scalar": 8, "sliding_window": 64,
        "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": 28, "patch_size": 14,
    }  # fmt: skip
    inherited: dict[str, Any] = {"eos_token_id": 1}  # an argument of the base class
    return Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, **inherited)


def model_of(config: PretrainedConfig) -> PreTrainedModel:
    """A model with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    model.eval()
    return model


def tokenizer_with(special: tuple[str, ...] = SPECIAL, text_begins: bool = False) -> Tokenizer:
    """A tokenizer with special tokens followed by the bytes.

    Args:
        text_begins: whether it puts the first special token, the BOS, before texts.
    """
    words = [*special, *sorted(ByteLevel.alphabet())]
    backend = Tokenizer(BPE({word: number for number, word in enumerate(words)}, []))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    backend.decoder = ByteLevelDecoder()
    backend.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    if text_begins:
        begin = special[0]
        backend.post_processor = TemplateProcessing(single=f"{begin} $A", special_tokens=[(begin, 0)])
    return backend


def write_folder(
    folder: Path,
    config: PretrainedConfig | None = None,
    backend: Tokenizer | None = None,
    template: str | None = None,
    tokenizer: dict[str, Any] | None = None,
    generation: dict[str, Any] | None = None,
) -> Path:
    """A model folder.

    Args:
        tokenizer: additional contents of tokenizer_config.json.
        generation: contents of generation_config.json.
    """
    model_of(config or llama()).save_pretrained(folder)
    (backend or tokenizer_with()).save(str(folder / "tokenizer.json"))
    usual = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": BOS, "eos_token": EOS, "pad_token": PAD}
    said = {**usual, **({"chat_template": template} if template else {}), **(tokenizer or {})}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    (folder / "generation_config.json").write_text(json.dumps(generation or {"eos_token_id": 1}))
    return folder
