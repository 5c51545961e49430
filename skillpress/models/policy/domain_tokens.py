"""Domain words as single tokens in a pretrained vocabulary.

The vocabulary 𝒱 is the agent's choice and may include "domain-specific tokens" and "structured output
vocabularies" (*Language as a Universal Interface for Reinforcement Learning Agents*, section 1.1). A
tokenizer made for prose cuts an action into many pieces. A word w that becomes one token is one decision and
costs one step of decoding. Its rows of the input and output embeddings are initialized with the mean of its
pieces' rows,

    e_w = (e_1 + ... + e_n) / n        for the n pieces that w was cut into before,

so the new token starts close to its meaning. With tied embeddings there is one such row. A word that is a
single token already stays the same.

The result is an ordinary model with an ordinary tokenizer: it is saved, loaded and served like any other.
Training with low-rank changes (LoRA) trains the new rows beside them (``trained_rows.py``). Left out:
training only the new rows first.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from skillpress.models.policy.policy import Policy


def with_tokens(policy: Policy, words: Sequence[str]) -> Policy:
    """Add a token for each of these words that was cut into pieces. The policy's model is changed in place.

    A word is found wherever its characters occur, the longest word first. A word that begins with a space is
    found within sentences.
    """
    pieces = {word: _pieces(policy.tokenizer, word) for word in words}
    fresh = [word for word, ids in pieces.items() if len(ids) > 1]
    if not fresh:
        return policy
    tokenizer = copy.deepcopy(policy.tokenizer)
    tokenizer.add_tokens([AddedToken(word, normalized=False, special=False) for word in fresh])
    if len(tokenizer) > len(_weights_by_token(policy)[0]):  # some models have more rows than tokens
        policy.model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    ids = [int(tokenizer.convert_tokens_to_ids(word)) for word in fresh]  # type: ignore[arg-type]
    for weight in _weights_by_token(policy):
        with torch.no_grad():
            for word, row in zip(fresh, ids, strict=True):
                weight[row] = weight[list(pieces[word])].float().mean(dim=0).to(weight.dtype)
    return Policy(policy.model, tokenizer)


def added_tokens(policy: Policy, words: Sequence[str]) -> list[int]:
    """The tokens that :func:`with_tokens` added for these words, from the policy that it returned, also after
    it was saved and loaded.

    New tokens are the vocabulary's last ones. A word that was the last token before is counted with them.
    """
    known = policy.tokenizer.get_added_vocab()
    wanted = {known[word] for word in words if word in known}
    last = max(known.values(), default=-1)
    found = []
    while last in wanted:
        found.append(last)
        last -= 1
    return found[::-1]


def mean_tokens(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> float:
    """Mean number of tokens per text."""
    return sum(len(_pieces(tokenizer, text)) for text in texts) / len(texts)


def _pieces(tokenizer: PreTrainedTokenizerFast, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids)


def _weights_by_token(policy: Policy) -> list[torch.Tensor]:
    """All weights with a row per token: input embeddings, and output embeddings and bias if separate."""
    found = [policy.model.get_input_embeddings().weight]
    head = policy.model.get_output_embeddings()
    if head is not None:
        own = [] if head.weight is found[0] else [head.weight]
        found += [*own, *([] if getattr(head, "bias", None) is None else [head.bias])]
    return [weight for weight in found if isinstance(weight, torch.Tensor)]
