"""Policies of every kind that is written, saved for other programs to read; ``asked.json`` in each folder
contains the question."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from skillpress.core.engine import Sampling
from skillpress.core.interface import ScratchVocabulary
from skillpress.models.engines.generate import generate
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy, load_policy, save_policy
from skillpress.models.policy.domain_tokens import with_tokens
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.pretrained import SMOLLM2, load_pretrained
from skillpress.models.policy.scratch import build_scratch_policy
from tests.support.models.folders import (
    CHATML,
    IN_PARTS,
    SHAPE,
    SPECIAL,
    THINKING,
    gemma3,
    llama,
    tokenizer_with,
    write_folder,
)
from tests.support.programs.reading_program import QUESTION

TEXT = "Go north. 80 + 28 = 108, isn't it?\n<action>op(+, 80, 28)</action> rollback"
NUMBERS = "7 49 up 3"
"""Text for the policy that is built from scratch."""
NEW = 6
WIDE = {"hidden_size": 64, "head_dim": 32}
"""Heads of a size that vLLM's CPU build supports."""
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "another base": ("Llama", {"rope_parameters": {"rope_theta": 70000.0, "rope_type": "default"}}),
    "llama3": (
        "Llama",
        {
            "rope_parameters": {
                "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
            }
        },
    ),
    "yarn": (
        "Qwen3",
        {
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0,
                "original_max_position_embeddings": 512,
            }
        },
    ),
    "two bases": (
        "Gemma3Text",
        {
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 900.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            },
        },
    ),
    "a part rotates": (
        "Phi",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5}},
    ),
    "experts": ("Qwen3Moe", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}),
}  # fmt: skip
"""Settings that transformers 4 names differently: a family and its configuration."""


def scratch(home: Path) -> Policy:
    """A policy built from scratch."""
    numbers = {str(number): number for number in range(50)}
    words = ScratchVocabulary((*numbers, "up", "down", "stop"), ("stop",), numbers, state_words=48)
    return build_scratch_policy(words, 64, 2, 2, 16, seed=0)


def base(home: Path) -> Policy:
    """A base model whose texts begin with its BOS."""
    return load_policy(write_folder(home / "source", wide(), tokenizer_with(text_begins=True)))


def chat(home: Path) -> Policy:
    """An instruction model whose files disagree about its ends, and whose generation settings are
    corrected."""
    tags = tokenizer_with((*SPECIAL, "<think>", "</think>"))
    said = {"extra_special_tokens": ["<think>", "</think>"], "add_bos_token": True}
    generation = {"eos_token_id": 1, "temperature": 0.6}
    return load_policy(write_folder(home / "source", wide(), tags, THINKING, said, generation))


def domain_tokens(home: Path) -> Policy:
    """A policy with domain words as single tokens."""
    source = write_folder(home / "source", wide(tie_word_embeddings=True), template=CHATML)
    return with_tokens(load_policy(source), ["<action>", "</action>", "rollback", " 28", "op("])


def smollm2(home: Path) -> Policy:
    """The only policy with trained weights."""
    return load_pretrained(SMOLLM2, "float32")


def multimodal(home: Path) -> Policy:
    """A multimodal Gemma 3 with a vision part."""
    return load_policy(write_folder(home / "source", gemma3(), template=IN_PARTS))


def family(name: str) -> Callable[[Path], Policy]:
    """A model of this family."""

    def make(home: Path) -> Policy:
        kind, changes = FAMILIES[name]
        shape = {**SHAPE, **WIDE, "num_key_value_heads": 1, **changes}
        config = getattr(transformers, f"{kind}Config")(**shape)
        return load_policy(write_folder(home / "source", config, template=CHATML))

    return make


def wide(**changes: Any) -> transformers.PretrainedConfig:
    """A Llama of this width."""
    return llama(**WIDE, **changes)


POLICIES: dict[str, Callable[[Path], Policy]] = {
    "scratch": scratch,
    "base": base,
    "chat": chat,
    "domain tokens": domain_tokens,
    "multimodal": multimodal,
    **{name: family(name) for name in FAMILIES},
}


def save_and_ask(policy: Policy, folder: Path) -> dict[str, Any]:
    """Save a policy; return its own answer in the form of ``reading_program``."""
    save_policy(policy, folder)
    return ask(policy, folder)


def save_trained_and_ask(policy: Policy, folder: Path) -> dict[str, Any]:
    """The same for a policy with a low-rank adapter, which is also in the folder."""
    changes = LoraAdapter(policy.model, rank=2, alpha=4, seed=0)
    save_policy(policy, folder, changes.merged(lambda weight: weight), changes.saved(lambda weight: weight))
    return ask(load_policy(folder), folder)


def ask(policy: Policy, folder: Path) -> dict[str, Any]:
    """Return a policy's answer, and write ``asked.json`` so that others can be asked the same."""
    text = NUMBERS if "49" in policy.tokenizer.vocab else TEXT
    (prompt,) = policy.encode([text])
    (said,) = generate(LocalEngine(policy), [prompt], Sampling(temperature=0, max_new_tokens=NEW), [0])
    parts = policy.tokenizer.chat_template == IN_PARTS
    content = [{"type": "text", "text": text}] if parts else text
    asked = {"content": content, "new": NEW, "context": min(512, policy.context_length)}
    (folder / QUESTION).write_text(json.dumps(asked))
    with torch.no_grad():
        logits = policy.model(torch.tensor([prompt])).logits[0, -1, :64]
    return {"prompt": list(prompt), "response": list(said.token_ids), "logits": logits.tolist()}
