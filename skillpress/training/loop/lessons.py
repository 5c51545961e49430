"""Lessons as passes through the model: decisions made with knowledge in the prompt, learned without it.

A lesson is a sample whose step has two prompts. Its response is scored after the plain prompt. If the loss
compares distributions, the response is also scored after the prompt that the policy really saw, with the same
weights and without a gradient. Then both whole distributions over the vocabulary are in memory, so passes are
small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import Responses, pack_responses
from skillpress.training.algorithms.batch import Indices
from skillpress.training.experience.experience import LessonLoss, LessonTokens
from skillpress.training.loop.samples import Samples

WholeScore = Callable[[Responses, float, bool], tuple[torch.Tensor, ...]]
"""A scorer, which returns log-probabilities first; the flag asks for whole distributions."""


@dataclass(frozen=True)
class LessonBatch:
    """The forward passes over some lessons."""

    plain: Responses
    given: Responses
    """The same response tokens in the same order, after the prompts with knowledge."""
    weights: torch.Tensor
    """[tokens] weights in the loss."""

    def with_continuations(self) -> LessonBatch:
        """See ``Responses.with_continuations``."""
        return replace(self, plain=self.plain.with_continuations(), given=self.given.with_continuations())

    @property
    def continued(self) -> bool:
        """Whether any response takes a second pass through the model."""
        return any(each.continuations.shape[1] > 0 for each in (self.plain, self.given))


def lesson_batches(
    lessons: Samples, token_limit: int, most_responded: int, device: torch.device, shared: bool
) -> list[LessonBatch]:
    """The lessons, split into passes.

    Args:
        token_limit: the most tokens of one pass; a longer lesson has a pass of its own.
        most_responded: the most response tokens of one pass, likewise.
        shared: whether a prompt that several responses follow goes through the model once.
    """
    found = []
    for together in pass_rows(lessons.pairs, token_limit, shared):
        for rows in _few(together, lessons.lengths, most_responded):
            few = lessons.select(rows)
            responses = (response for _, response in few.pairs.rows)
            weights = np.repeat(few.weights, few.lengths)
            found.append(
                LessonBatch(
                    plain=pack_responses([*zip(few.plain_prompts or (), responses, strict=True)], device),
                    given=pack_responses(few.pairs, device),
                    weights=torch.tensor(weights, dtype=torch.float32, device=device),
                )
            )
    return found


def _few(rows: Indices, lengths: Indices, most: int) -> Iterator[Indices]:
    """The rows in parts of at most ``most`` response tokens, or of one row."""
    ends = np.cumsum(lengths[rows])
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield rows[start:end]
        start = end


def weightless(device: torch.device) -> LessonBatch:
    """Passes of one token with weight 0."""
    nothing = pack_responses([((0,), (0,))], device)
    return LessonBatch(plain=nothing, given=nothing, weights=torch.zeros(1, device=device))


def lesson_loss(
    score: WholeScore, batch: LessonBatch, loss: LessonLoss, temperature: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss of a batch, and metrics: weighted sums, the sum of weights ``weight``, and ``tokens``."""
    kl = None
    if loss.compares:
        with torch.no_grad():
            given, *_ = score(batch.given, temperature, True)
        plain, *_ = score(batch.plain, temperature, True)
        kl = kl_of(given, plain)
        logprobs = plain.gather(1, batch.plain.targets[:, None]).squeeze(1)
    else:
        logprobs, *_ = score(batch.plain, temperature, False)
    found, metrics = loss(LessonTokens(logprobs=logprobs, kl=kl, weights=batch.weights))
    weighing = torch.count_nonzero(batch.weights)
    return found, {**metrics, "weight": batch.weights.sum(), "tokens": weighing}


def kl_of(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[tokens] KL(p || q) = sum_v p_v (log p_v - log q_v), from log p and log q [tokens, vocabulary]."""
    return (first.exp() * (first - second)).sum(dim=-1)
