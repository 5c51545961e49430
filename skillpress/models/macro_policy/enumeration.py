"""Sum pi(A | X) over responses: a tree of prefixes in which the likely branches are followed.

A response ends with a stop token or after ``max_new_tokens``. The tree grows token by token from a prompt;
the prefixes of all states are computed together in batches of plain forward passes. Every response that ends
with a stop token is read, however unlikely it is. A prefix is followed, and a response that reaches the
maximum length is read, only if its probability is above ``cut``. The mass of all others is known and counts
as left out. At each depth a state has at most 1 / cut such prefixes, since their masses sum to at most 1.

The sums are those of the distribution that the policy samples from: temperature, top-p and top-k are those of
``Sampling``. Nothing is drawn, and no engine is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, log

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from skillpress.core.engine import Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.sampler import drawn_from
from skillpress.models.macro_policy.actions import MacroPolicy, entropy

BATCH_TOKENS = 16_384
"""Maximum number of tokens in a forward pass, including padding."""


@dataclass
class _Tree:
    """The sums over one state's responses so far."""

    masses: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    responses: list[float] = field(default_factory=list)
    """The mass of each response that was read."""
    logs_left: list[float] = field(default_factory=list)
    """ln of the number of responses below each branch that was not followed."""

    def policy(self) -> MacroPolicy:
        total = sum(self.responses)
        # Not 1 - total if all were read: the masses of float32 softmaxes sum to 1 only up to rounding.
        left = max(0.0, 1.0 - total) if self.logs_left else 0.0
        return MacroPolicy(
            probabilities=dict(self.masses),
            left_out=left,
            log_responses_left=float(np.logaddexp.reduce(self.logs_left)) if self.logs_left else -inf,
            responses=len(self.responses),
            response_entropy=entropy((*self.responses, left)),
        )


@dataclass(frozen=True)
class _Prefix:
    state: int
    tokens: TokenIds
    logprob: float


@dataclass(frozen=True)
class Enumeration:
    """Sums over the responses of a model."""

    model: PreTrainedModel
    """The model, in the mode in which it samples."""
    sampling: Sampling
    stop: frozenset[int]
    """The tokens that end a response."""
    read: Callable[[TokenIds], str]
    """Parser(Decode(v)): maps a response to its action."""
    cut: float = 1e-4
    """Branches with a lower probability are not followed."""
    budget: int | None = None
    """Tokens of all passes of a call; the likeliest prefixes of each length come first. None: no limit."""

    @torch.no_grad()
    def __call__(self, prompts: Sequence[TokenIds]) -> list[MacroPolicy]:
        """pi(. | X) for each state, given by its prompt."""
        trees = [_Tree() for _ in prompts]
        prefixes = [_Prefix(state, (), 0.0) for state in range(len(prompts))]
        left = inf if self.budget is None else self.budget
        for depth in range(self.sampling.max_new_tokens):
            prefixes, left = self._affordable(prefixes, prompts, left, trees)
            following: list[_Prefix] = []
            for batch in _batches(prefixes, prompts):
                rows = [prompts[prefix.state] + prefix.tokens for prefix in batch]
                logprobs = drawn_from(next_logits(self.model, rows), self.sampling).double().cpu().numpy()
                for prefix, row in zip(batch, logprobs, strict=True):
                    following += self._grow(trees[prefix.state], prefix, row + prefix.logprob, depth + 1)
            prefixes = following
        return [tree.policy() for tree in trees]

    def _affordable(
        self, prefixes: list[_Prefix], prompts: Sequence[TokenIds], left: float, trees: Sequence[_Tree]
    ) -> tuple[list[_Prefix], float]:
        """(the likeliest prefixes within the budget, the tokens that remain); other prefixes count as left
        out."""
        lengths = [len(prompts[prefix.state]) + len(prefix.tokens) for prefix in prefixes]
        if sum(lengths) <= left:
            return prefixes, left - sum(lengths)
        kept: set[int] = set()
        for row in sorted(range(len(prefixes)), key=lambda row: -prefixes[row].logprob):
            if lengths[row] <= left:
                kept.add(row)
                left -= lengths[row]
            else:
                further = self.sampling.max_new_tokens - len(prefixes[row].tokens)
                vocabulary = self.model.config.get_text_config().vocab_size
                trees[prefixes[row].state].logs_left.append(further * log(vocabulary))
        return [prefix for row, prefix in enumerate(prefixes) if row in kept], left

    def _grow(
        self, tree: _Tree, prefix: _Prefix, logprobs: NDArray[np.float64], length: int
    ) -> list[_Prefix]:
        """Read the responses that end here; return the prefixes to follow.

        Args:
            logprobs: [vocabulary], log-probabilities of the prefix followed by each token.
            length: number of tokens of these.
        """
        stops = np.zeros(len(logprobs), np.bool_)
        stops[list(self.stop)] = True
        likely = logprobs > log(self.cut)
        last = length == self.sampling.max_new_tokens
        ended = np.flatnonzero(np.isfinite(logprobs) & (stops | (likely & last)))
        masses = np.exp(logprobs[ended]).tolist()
        tree.responses += masses
        for token, mass in zip(ended.tolist(), masses, strict=True):
            tree.masses[self.read((*prefix.tokens, token))] += mass
        dropped = np.count_nonzero(np.isfinite(logprobs) & ~stops & ~likely)
        if dropped:
            further = (self.sampling.max_new_tokens - length) * log(len(logprobs))
            tree.logs_left.append(log(dropped) + further)
        if last:
            return []
        return [
            _Prefix(prefix.state, (*prefix.tokens, token), float(logprobs[token]))
            for token in np.flatnonzero(likely & ~stops).tolist()
        ]


def next_logits(model: PreTrainedModel, rows: Sequence[TokenIds]) -> torch.Tensor:
    """[rows, vocabulary], the model's own logits after each row of tokens, on its device."""
    device, width = model.device, max(map(len, rows))
    tokens = torch.zeros(len(rows), width, dtype=torch.long)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row)
    ends = torch.tensor([len(row) - 1 for row in rows])
    kept, place = torch.unique(ends, return_inverse=True)
    mask = torch.arange(width) <= ends[:, None]
    logits: torch.Tensor = model(
        input_ids=tokens.to(device),
        attention_mask=None if bool(mask.all()) else mask.to(device),
        use_cache=False,
        logits_to_keep=kept.to(device),
    ).logits
    return logits[torch.arange(len(rows), device=device), place.to(device)]


def _batches(prefixes: Sequence[_Prefix], prompts: Sequence[TokenIds]) -> Iterator[list[_Prefix]]:
    """Split prefixes, in order, into batches of at most the number of tokens of a forward pass."""
    batch: list[_Prefix] = []
    width = 0
    for prefix in prefixes:
        wider = max(width, len(prompts[prefix.state]) + len(prefix.tokens))
        if batch and wider * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch, wider = [], len(prompts[prefix.state]) + len(prefix.tokens)
        batch, width = [*batch, prefix], wider
    if batch:
        yield batch
