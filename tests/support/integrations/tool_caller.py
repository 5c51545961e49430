"""A model of 0.1M weights that calls the tool ``act`` in Qwen's wording, taught by a few demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl.chat_template_utils import qwen2_5_chat_template

from skillpress.environments.countdown.oracle import CountdownOracle
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.integrations.trl import ToolEnvironments

Messages = list[dict[str, Any]]


def demonstration(environments: ToolEnvironments, row: dict[str, Any]) -> Messages:
    """The conversation of a winning episode."""
    environment = environments()
    seen = environment.reset(**row)
    told: Messages = [{"role": "user", "content": row["prompt"][0]["content"] + seen}]
    section = environments._section
    assert isinstance(section, CountdownParameters)
    for word in CountdownOracle(section)(environment.task, 0.0, 0):
        answer = environment.act(word)
        action = environment.episode.steps[-1].action
        call = {"type": "function", "function": {"name": "act", "arguments": {"action": action}}}
        told.append({"role": "assistant", "content": "", "tool_calls": [call]})
        told.append({"role": "tool", "name": "act", "content": answer})
    assert environment.episode.won
    return [*told, {"role": "assistant", "content": "Done."}]


LEARNED = 0.01
"""Loss in nats per token at which the model calls its tool in nearly every episode, however a processor
rounds."""


def save_tool_caller(environments: ToolEnvironments, folder: Path) -> None:
    """Teach a model to win the environments' tasks and write it to a folder."""
    told = [demonstration(environments, row) for row in environments.dataset()]
    act = environments().act
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(BPE()), eos_token="<|im_end|>")
    tokenizer.chat_template = qwen2_5_chat_template
    texts = [str(tokenizer.apply_chat_template(each, tools=[act], tokenize=False)) for each in told]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_trained_on(texts), eos_token="<|im_end|>", pad_token="<|pad|>", padding_side="left"
    )
    tokenizer.chat_template = qwen2_5_chat_template
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=2, max_position_embeddings=2048, tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    batch = tokenizer(
        texts, return_tensors="pt", padding=True, padding_side="right", return_token_type_ids=False
    )
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    for _ in range(1000):
        loss = model(**batch, labels=labels).loss
        if loss < LEARNED:
            break
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss < LEARNED, f"the demonstrations are not learned: {loss:.3f} nats a token"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _trained_on(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteDecoder()
    trainer = BpeTrainer(
        vocab_size=600,
        special_tokens=["<|pad|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
