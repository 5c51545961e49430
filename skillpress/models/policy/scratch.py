"""A language model built from scratch: a few layers, and exactly the words that its environment uses.

The vocabulary is the environment's own: one token per integer, and one per action or per word of an action.
If a whole action is one token, a step of an episode is one forward pass. Integers would be unrelated symbols
to a new embedding table. So the row of n is initialized with sines and cosines of n over periods from 2 to
2000, and with log n, which makes nearness and divisibility visible from the first update on.
"""

from __future__ import annotations

import math

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skillpress.core.interface import ScratchVocabulary
from skillpress.models.policy.policy import Policy

PAD, UNKNOWN = "<pad>", "<unk>"


def build_scratch_policy(
    vocabulary: ScratchVocabulary, width: int, layers: int, heads: int, response_words: int, seed: int
) -> Policy:
    """A Llama-style model of ``width``, ``layers`` and ``heads`` over the vocabulary.

    Args:
        vocabulary: the words of the environment's compact rendering.
        width: hidden size; the feed-forward size is three times as large.
        response_words: maximum length of a response, in tokens.
        seed: seed of the initial weights.
    """
    tokenizer = word_tokenizer(vocabulary.words, vocabulary.end)
    stop = tokenizer.convert_tokens_to_ids(list(vocabulary.stop_words))
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=vocabulary.state_words + response_words,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=stop,
        pad_token_id=tokenizer.pad_token_id,
    )
    # transformers draws weights from the global generator, whose state must not change for other code.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=stop, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    _start_numbers(model, tokenizer, vocabulary)
    return Policy(model.eval(), tokenizer)


def word_tokenizer(words: tuple[str, ...], end: str | None = None) -> PreTrainedTokenizerFast:
    """A tokenizer of words between spaces; ``end`` closes responses and is not part of their text."""
    vocabulary = {word: index for index, word in enumerate((PAD, UNKNOWN, *words))}
    backend = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token=PAD, unk_token=UNKNOWN, eos_token=end)


def number_features(numbers: torch.Tensor, width: int) -> torch.Tensor:
    """[n] integers to [n, width]: log n, then sines and cosines of periods 2 to 2000 (log-spaced).

    The first column of -n is that of n with the opposite sign.
    """
    waves = (width - 1) // 2
    periods = torch.logspace(math.log10(2), math.log10(2000), waves)
    angles = 2 * math.pi * numbers[:, None] / periods
    size = torch.sign(numbers) * torch.log1p(numbers.abs())  # log1p alone is NaN below -1
    columns = [size[:, None] / math.log(1000), torch.sin(angles), torch.cos(angles)]
    features = torch.cat(columns, dim=1)
    return torch.nn.functional.pad(features, (0, width - features.shape[1]))


def _start_numbers(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, vocabulary: ScratchVocabulary
) -> None:
    if not vocabulary.numbers:
        return
    rows = torch.tensor(tokenizer.convert_tokens_to_ids(list(vocabulary.numbers)))
    values = torch.tensor(list(vocabulary.numbers.values()), dtype=torch.float32)
    embedding = model.get_input_embeddings().weight
    assert isinstance(embedding, torch.Tensor)
    with torch.no_grad():
        features = number_features(values, embedding.shape[1])
        embedding[rows] = features * (0.5 * embedding.shape[1] ** 0.5 / features.norm(dim=1, keepdim=True))
