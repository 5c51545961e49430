"""Lessons as passes through the model: decisions made with knowledge in the prompt, learned without it.

A lesson is a step with two prompts. Its response is scored after the plain prompt. If the loss
compares distributions, the response is also scored after the prompt that the policy really saw, with the same
weights and without a gradient. Then both whole distributions over the vocabulary are in memory, so passes are
small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from skillpress.core.trajectory import Step
from skillpress.models.policy import token_scores
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import Responses, pack_responses
from skillpress.training.algorithms.batch import Batch, Floats, Indices
from skillpress.training.experience.experience import LessonLoss, LessonTokens
from skillpress.training.loop.measured import LESSON
from skillpress.training.loop.model_pass import Pass
from skillpress.training.loop.part import Part, Terms, Update
from skillpress.training.loop.scoring_passes import ScoringPasses

WholeScore = Callable[[Responses, float, bool], tuple[torch.Tensor, ...]]
"""A scorer, which returns log-probabilities first; the flag asks for whole distributions."""


class Lessons(Part):
    """The loss of the lessons that an update has beside its samples."""

    def __init__(self, method: LessonLoss, vocabulary: int) -> None:
        """Make passes that have no more whole distributions in memory than a scorer has logits.

        Args:
            vocabulary: the number of tokens that the model knows.
        """
        self.method, self._most = method, max(1, token_scores.CHUNK_LOGITS // vocabulary)

    def passes(self, update: Update, scoring: ScoringPasses) -> list[Pass]:
        """The update's lessons."""
        if update.lessons is None:
            return []
        limit, device = scoring.token_limit, scoring.device
        return lesson_passes(update.lessons, limit, self._most, device, scoring.shared)

    def loss(self, each: Pass, update: Update, scoring: ScoringPasses) -> Terms:
        """The method's loss."""
        loss, metrics = lesson_loss(scoring.score, each, self.method, scoring.temperature)
        return loss, {f"{LESSON}{name}": value for name, value in metrics.items()}


def lessons_of(steps: Sequence[Step], weights: Floats | None = None) -> Batch:
    """Decisions of further attempts, each with a plain prompt; all their tokens have advantage 1."""
    plain = tuple(step.plain_prompt_ids or () for step in steps)
    return Batch.of_steps(steps, np.ones(len(steps)), weights, plain_prompts=plain)


def lesson_passes(
    lessons: Batch, token_limit: int, most_responded: int, device: torch.device | str, shared: bool
) -> list[Pass]:
    """The lessons, split into passes.

    Args:
        token_limit: the most tokens of one pass; a longer lesson has a pass of its own.
        most_responded: the most response tokens of one pass, likewise.
        shared: whether a prompt that several responses follow goes through the model once.
    """
    found = []
    for together in pass_rows(lessons.pairs, token_limit, shared):
        for rows in _few(together, lessons.tokens, most_responded):
            few = lessons.cut(rows)
            responses = (response for _, response in few.pairs.rows)
            plain = pack_responses([*zip(few.plain_prompts or (), responses, strict=True)], device)
            found.append(Pass(few, plain, given=pack_responses(few.pairs, device)))
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


def lesson_loss(
    score: WholeScore, taught: Pass, loss: LessonLoss, temperature: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss of a pass of lessons, and metrics: weighted sums, the sum of weights ``weight``, and
    ``tokens``."""
    kl, responses = None, taught.responses
    by_token = np.repeat(taught.batch.weights, taught.batch.tokens)
    weights = torch.tensor(by_token, dtype=torch.float32, device=responses.targets.device)
    if loss.compares and taught.given is not None:
        with torch.no_grad():
            given, *_ = score(taught.given, temperature, True)
        plain, *_ = score(responses, temperature, True)
        kl = kl_of(given, plain)
        logprobs = plain.gather(1, responses.targets[:, None]).squeeze(1)
    else:
        logprobs, *_ = score(responses, temperature, False)
    found, metrics = loss(LessonTokens(logprobs=logprobs, kl=kl, weights=weights))
    weighing = torch.count_nonzero(weights)
    return found, {**metrics, "weight": weights.sum(), "tokens": weighing}


def kl_of(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[tokens] KL(p || q) = sum_v p_v (log p_v - log q_v), from log p and log q [tokens, vocabulary]."""
    return (first.exp() * (first - second)).sum(dim=-1)
