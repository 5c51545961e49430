"""A policy of a few weights with the chat template of a real model, over bytes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skillpress.models.policy import Policy

PAD, BEGIN, END = "<|pad|>", "<|im_start|>", "<|im_end|>"


def chat_policy(template: str, context: int = 4096, merges: Sequence[tuple[str, str]] = ()) -> Policy:
    """A policy whose every byte is a token; responses end with ``<|im_end|>``.

    Args:
        merges: pairs of tokens that are a token together.
    """
    tokens = [*sorted(ByteLevel.alphabet()), *map("".join, merges)]
    backend = Tokenizer(
        BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=list(merges))
    )
    backend.pre_tokenizer, backend.decoder = ByteLevel(add_prefix_space=False), ByteDecoder()
    backend.add_special_tokens([AddedToken(word, special=True) for word in (PAD, BEGIN, END)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = template
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=1,
            num_attention_heads=1, max_position_embeddings=context, eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id)
    return Policy(model.eval(), tokenizer)
