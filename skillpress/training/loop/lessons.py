"""Lessons as passes through the model: decisions made with knowledge in the prompt, learned without it.

A lesson is a step with two prompts. Its response is scored after the plain prompt. If the loss
compares distributions, the response is also scored after the prompt that the policy really saw, with the same
weights and without a gradient. Then both whole distributions over the vocabulary are in memory, so passes are
small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from skillpress.core.trajectory import Step
from skillpress.models.policy import token_scores
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import on_device, pack_responses
from skillpress.training.algorithms.batch import Batch, Floats, Indices
from skillpress.training.experience.experience import LessonTokens
from skillpress.training.experience.parameters import ExperienceParameters
from skillpress.training.loop.measured import LESSON
from skillpress.training.loop.model_pass import Pass
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.update import Terms, Update, UpdatePart


class Lessons(UpdatePart):
    """The loss of the lessons that an update has in addition to its samples."""

    def __init__(self, method: ExperienceParameters, vocabulary: int) -> None:
        """A pass has as few response tokens as a scorer's chunk of logits, or one lesson.

        Args:
            vocabulary: the number of tokens that the model knows.
        """
        self.method, self._most = method, max(1, token_scores.CHUNK_LOGITS // vocabulary)

    def passes(self, update: Update, scoring: ScoringPasses) -> list[Pass]:
        """The update's lessons."""
        if update.lessons is None:
            return []
        found, lessons, device = [], update.lessons, scoring.device
        for together in pass_rows(lessons.pairs, scoring.token_limit, scoring.shared):
            for rows in _few(together, lessons.tokens, self._most):
                few = lessons.cut(rows)
                responses = (response for _, response in few.pairs.rows)
                plain = pack_responses([*zip(few.plain_prompts or (), responses, strict=True)], device)
                found.append(Pass(few, plain, rows, pack_responses(few.pairs, device)))
        return found

    def loss(self, each: Pass, update: Update, scoring: ScoringPasses) -> Terms:
        """The method's loss and metrics, the sum of weights ``weight``, and ``tokens``."""
        kl, responses = None, each.responses
        by_token = np.repeat(each.batch.weights, each.batch.tokens)
        weights = on_device(by_token.astype(np.float32), responses.targets.device)
        score, temperature = scoring.score, scoring.temperature
        if self.method.compares_distributions and each.given is not None:
            # With a gradient, the prompt with knowledge would also move towards the plain one.
            with torch.no_grad():
                given, *_ = score(each.given, temperature, True)
            plain, *_ = score(responses, temperature, True)
            kl = kl_of(given, plain)
            logprobs = plain.gather(1, responses.targets[:, None]).squeeze(1)
        else:
            logprobs, *_ = score(responses, temperature, False)
        loss, metrics = self.method.loss(LessonTokens(logprobs=logprobs, kl=kl, weights=weights))
        metrics = {**metrics, "weight": weights.sum(), "tokens": torch.count_nonzero(weights)}
        return loss, {f"{LESSON}{name}": value for name, value in metrics.items()}


def lessons_of(steps: Sequence[Step], weights: Floats | None = None) -> Batch:
    """Decisions of further attempts, each with a plain prompt; all their tokens have advantage 1."""
    plain = tuple(step.plain_prompt_ids or () for step in steps)
    return Batch.of_steps(steps, np.ones(len(steps)), weights, plain_prompts=plain)


def _few(rows: Indices, lengths: Indices, most: int) -> Iterator[Indices]:
    """The rows in parts of at most ``most`` response tokens, or of one row."""
    ends = np.cumsum(lengths[rows])
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield rows[start:end]
        start = end


def kl_of(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[tokens] KL(p || q) = sum_v p_v (log p_v - log q_v), from log p and log q [tokens, vocabulary]."""
    return (first.exp() * (first - second)).sum(dim=-1)
