"""Domain words as tokens of their own, in a pretrained vocabulary.

The vocabulary 𝒱 is a choice of the agent's, with "domain-specific tokens" and "structured output
vocabularies" among it (*Language as a Universal Interface for Reinforcement Learning Agents*, section 1.1).
A tokenizer made for prose cuts an action into many pieces; a word w that becomes one token is one decision,
and costs one step of decoding. Its rows of the input and of the output embeddings begin at the mean of
those of its pieces,

    e_w = (e_1 + ... + e_n) / n        for the n pieces that w was cut into before,

so that it begins near what it means. Tied embeddings have one such row. What is one token already stays it.

What comes out is an ordinary model with an ordinary tokenizer: it is saved, loaded and served as any other.
Left out: training the new rows alone first. Whoever trains low-rank changes only (LoRA) leaves them where
they began.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from skillpress.models.policy.policy import Policy


def with_tokens(policy: Policy, words: Sequence[str]) -> Policy:
    """The policy with a token for each of these words that was cut into pieces; its model is changed in
    place.

    A word is found wherever its characters stand, the longest first; one that begins with a space is found in
    the middle of sentences.
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


def mean_tokens(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> float:
    """Tokens per text."""
    return sum(len(_pieces(tokenizer, text)) for text in texts) / len(texts)


def _pieces(tokenizer: PreTrainedTokenizerFast, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids)


def _weights_by_token(policy: Policy) -> list[torch.Tensor]:
    """Whatever has a row per token: the input embeddings, and the output's and its bias where it has its
    own."""
    found = [policy.model.get_input_embeddings().weight]
    head = policy.model.get_output_embeddings()
    if head is not None:
        own = [] if head.weight is found[0] else [head.weight]
        found += [*own, *([] if getattr(head, "bias", None) is None else [head.bias])]
    return [weight for weight in found if isinstance(weight, torch.Tensor)]
