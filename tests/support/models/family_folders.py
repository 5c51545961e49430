"""Tiny random models of the families in use, each with its family's configuration and chat template.

Real are the class, the settings that only this family has, the number of stop tokens, and which file names
which of them. Sizes are shrunk, and so are windows and the lengths that rotary scaling counts in. The
tokenizer encodes bytes and has the family's special tokens. Templates are written here in the form that
public folders have, without their branches for tools.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import transformers
from tokenizers import AddedToken
from transformers import PretrainedConfig

from skillpress.models.policy import Policy, load_policy
from tests.support.models.folders import CHATML, THINK, THINK_END, tokenizer_with, write_folder

VOCABULARY = 280
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 1024,
    "initializer_range": 0.4, "rms_norm_eps": 1e-6,
}  # fmt: skip
WINDOW = 8


def opened_by(system: str) -> str:
    """ChatML that begins with this system text unless the conversation brings one."""
    turn = "{{ '<|im_start|>system\n" + system + "<|im_end|>\n' }}"
    return "{% if messages[0].role != 'system' %}" + turn + "{% endif %}" + CHATML


def alternating(turns: str, end: str = "") -> str:
    """A template that refuses a system text, and roles that do not alternate."""
    return (
        "{{ bos_token }}{% for m in messages %}"
        "{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}"
        + turns + "{% endfor %}" + end
    )  # fmt: skip


LLAMA3 = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}"
    "{% set messages = messages[1:] %}{% else %}{% set system = '' %}{% endif %}"
    "{{ '<|start_header_id|>system<|end_header_id|>\n\n' }}"
    "{{ 'Cutting Knowledge Date: December 2023\nToday Date: ' }}"
    "{{ strftime_now('%d %b %Y') + '\n\n' + system + '<|eot_id|>' }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA_TURN = (
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}"
    "{{ m.content | trim + '<end_of_turn>\n' }}"
)
GEMMA_END = "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
GEMMA3 = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}"
    "{% set first = (messages[0].content if messages[0].content is string else messages[0].content[0].text)"
    " + '\n\n' %}{% set messages = messages[1:] %}{% else %}{% set first = '' %}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}"
    "{{ first if loop.first else '' }}{% if m.content is string %}{{ m.content | trim }}{% else %}"
    "{% for part in m.content %}{% if part.type == 'image' %}{{ '<start_of_image>' }}{% else %}"
    "{{ part.text | trim }}{% endif %}{% endfor %}{% endif %}{{ '<end_of_turn>\n' }}{% endfor %}" + GEMMA_END
)
MISTRAL_TURN = (
    "{% if m.role == 'user' %}{{ ' [INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}"
)
QWEN3 = (
    "{% for m in messages %}{% set said = m.content.split('</think>')[-1].lstrip('\n')"
    " if m.role == 'assistant' else m.content %}{{ '<|im_start|>' + m.role + '\n' + said + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
R1 = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}"
    "{% elif m.role == 'user' %}{{ '<｜User｜>' + m.content }}{% else %}"
    "{{ '<｜Assistant｜>' + m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Family:
    """What a folder of the family says. Numbers of tokens are places in ``special``."""

    kind: str
    """Its configuration's class, without ``Config``."""
    template: str
    special: tuple[str, ...]
    """Special tokens by their ids; the first is the one that texts begin with, if any."""
    tokenizer: dict[str, Any]
    """Of tokenizer_config.json."""
    ends: list[int]
    """``eos_token_id`` of generation_config.json."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the configuration says besides the shape."""
    words: tuple[str, ...] = ()
    """Added tokens that are not special."""
    text_begins: bool = False
    """Whether the tokenizer puts the first special token before texts."""
    wraps: Callable[[dict[str, Any]], PretrainedConfig] | None = None
    """Makes the configuration of a model whose language model is a part, from the part's."""

    def config(self) -> PretrainedConfig:
        """The configuration of the tiny model."""
        values = {**SHAPE, **self.settings}
        if self.wraps is not None:
            return self.wraps(values)
        found: PretrainedConfig = getattr(transformers, f"{self.kind}Config")(**values)
        return found

    def policy(self, folder: Path) -> Policy:
        """The policy of a folder that is written as the family's are."""
        backend = tokenizer_with(self.special, self.text_begins)
        backend.add_tokens([AddedToken(word, special=False, normalized=False) for word in self.words])
        generation = {"eos_token_id": self.ends if len(self.ends) > 1 else self.ends[0]}
        write_folder(folder, self.config(), backend, self.template, self.tokenizer, generation)
        return load_policy(folder)


def pictures_too(text_config: dict[str, Any]) -> PretrainedConfig:
    """Gemma 3 with its vision part."""
    vision = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": 28, "patch_size": 14,
    }  # fmt: skip
    return transformers.Gemma3Config(text_config=text_config, vision_config=vision, mm_tokens_per_image=4)


def named(begin: str | None, end: str, pad: str) -> dict[str, Any]:
    """The special tokens that tokenizer_config.json names."""
    return {"bos_token": begin, "eos_token": end, "pad_token": pad}


CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
GEMMA = ("<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>")
LLAMA3_TOKENS = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eom_id|>", "<|eot_id|>",
)  # fmt: skip
R1_TOKENS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
R1_SAYS: dict[str, Any] = {
    "template": R1,
    "special": R1_TOKENS,
    "words": (THINK, THINK_END),
    "tokenizer": {**named(R1_TOKENS[0], R1_TOKENS[1], R1_TOKENS[1]), "add_bos_token": True},
    "ends": [1],
    "text_begins": True,
}
ROPE_LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}  # fmt: skip
GEMMA_SAYS: dict[str, Any] = {
    "special": GEMMA,
    "tokenizer": named("<bos>", "<eos>", "<pad>"),
    "ends": [1, 4],
    "text_begins": True,
}
GEMMA_SETTINGS: dict[str, Any] = {
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "sliding_window": WINDOW,
    "query_pre_attn_scalar": 8, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True,
}  # fmt: skip
GEMMA3_SETTINGS = {
    **GEMMA_SETTINGS,
    "num_hidden_layers": 6,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    },
}

FAMILIES: dict[str, Family] = {
    "Qwen2.5": Family(
        "Qwen2",
        opened_by("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
        special=CHAT,
        tokenizer=named(None, "<|im_end|>", "<|endoftext|>"),
        ends=[2, 0],
        settings={"use_sliding_window": False, "sliding_window": WINDOW, "max_window_layers": 1,
                  "eos_token_id": 2, "bos_token_id": 0, "tie_word_embeddings": True},
    ),
    "Qwen3": Family(
        "Qwen3",
        QWEN3,
        special=CHAT,
        tokenizer=named(None, "<|im_end|>", "<|endoftext|>"),
        ends=[2, 0],
        settings={"use_sliding_window": False, "sliding_window": None, "attention_bias": False,
                  "eos_token_id": 2, "bos_token_id": 0, "tie_word_embeddings": True},
        words=(THINK, THINK_END),
    ),
    "Llama 3": Family(
        "Llama",
        LLAMA3,
        special=LLAMA3_TOKENS,
        tokenizer=named("<|begin_of_text|>", "<|eot_id|>", "<|eot_id|>"),
        ends=[1, 4, 5],
        settings={"rope_parameters": ROPE_LLAMA3, "bos_token_id": 0, "eos_token_id": [1, 4, 5],
                  "tie_word_embeddings": True},
        text_begins=True,
    ),
    "Gemma 2": Family(
        "Gemma2",
        alternating(GEMMA_TURN, GEMMA_END),
        **GEMMA_SAYS,
        settings={**GEMMA_SETTINGS, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    "Gemma 3 (text)": Family("Gemma3Text", GEMMA3, **GEMMA_SAYS, settings=GEMMA3_SETTINGS),
    "Gemma 3 (pictures)": Family(
        "Gemma3", GEMMA3, **GEMMA_SAYS, settings=GEMMA3_SETTINGS, wraps=pictures_too
    ),
    "Mistral 7B v0.1": Family(
        "Mistral",
        alternating(MISTRAL_TURN),
        special=("<s>", "</s>", "<unk>"),
        tokenizer={**named("<s>", "</s>", "</s>"), "add_bos_token": True},
        ends=[1],
        settings={"sliding_window": WINDOW, "bos_token_id": 0, "eos_token_id": 1,
                  "tie_word_embeddings": False},
        text_begins=True,
    ),
    "SmolLM2": Family(
        "Llama",
        opened_by("You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
        special=CHAT,
        tokenizer=named("<|im_start|>", "<|im_end|>", "<|im_end|>"),
        ends=[2],
        settings={"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "tie_word_embeddings": True},
    ),
    "R1 distillation (Qwen)": Family(
        "Qwen2",
        **R1_SAYS,
        settings={"use_sliding_window": False, "sliding_window": WINDOW, "max_window_layers": 1,
                  "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False},
    ),
    "R1 distillation (Llama)": Family(
        "Llama",
        **R1_SAYS,
        settings={"rope_parameters": {**ROPE_LLAMA3, "factor": 8.0}, "bos_token_id": 0, "eos_token_id": 1,
                  "tie_word_embeddings": False},
    ),
}  # fmt: skip
