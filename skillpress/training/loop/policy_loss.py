"""The algorithm's loss of an update's samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skillpress.models.policy.passes import pass_rows
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Batch
from skillpress.training.algorithms.importance_weights import TruncatedImportance
from skillpress.training.loop.model_pass import Pass, scored
from skillpress.training.loop.own_scores import completed, prepared, with_importance
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.update import Terms, Update, UpdatePart


class PolicyLoss(UpdatePart):
    """The algorithm's loss, with the learner's own scores that it needs (``own_scores.py``)."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        if algorithm.whole_trajectories:
            self.columns = {"trajectory_sums": np.array([[0.0, 1.0, 0.0, 0.0]])}

    def prepare(self, shares: Sequence[Batch], scoring: ScoringPasses) -> Sequence[Batch]:
        """The updates' samples. With importance weights, those of later updates get proximal
        log-probabilities and weighted advantages; the first update scores its own under the same weights."""
        importance = self.algorithm.importance_weights
        if importance is None:
            return shares
        later = [with_importance(share, scoring.logprobs(share), importance) for share in shares[1:]]
        return [*shares[:1], *later]

    def passes(self, update: Update, scoring: ScoringPasses) -> list[Pass]:
        """The passes of the samples. If the loss needs whole trajectories, those spread over several passes
        are scored first."""
        samples = update.samples
        if self.algorithm.whole_trajectories:
            together = list(pass_rows(samples.pairs, scoring.token_limit, scoring.shared))
            samples = prepared(samples, together, scoring.logprobs, self._importance(update))
        return scoring.passes(samples)

    def loss(self, each: Pass, update: Update, scoring: ScoringPasses) -> Terms:
        """The loss, and the algorithm's metrics, ``entropy`` and sums of weights."""
        samples = self._checked(each.batch)
        logprobs, entropies, *values = scoring(each)
        # Detached: it is kept until the end of the update, and the graph belongs to this pass alone.
        update.scored.append((each, logprobs.detach()))
        importance = self._importance(update)
        if importance is not None or samples.trajectory_sums is not None:
            samples = completed(samples, logprobs.detach().cpu().numpy(), importance)
        tokens = scored(samples, logprobs, *values)
        loss, metrics = self.algorithm.loss(tokens)
        counted = {"entropy": (tokens.weights * entropies).sum(), "weight": tokens.weights.sum()}
        if tokens.reference_logprobs is not None:
            drawn = tokens.weights if tokens.kl_weights is None else tokens.kl_weights
            counted["reference_weight"] = drawn.sum()
        return loss, {**metrics, **counted}

    def _importance(self, update: Update) -> TruncatedImportance | None:
        """The weights of a step's first update, whose proximal policy is the current one; None in others."""
        first = update.samples.proximal_logprobs is None
        return self.algorithm.importance_weights if first else None

    def _checked(self, samples: Batch) -> Batch:
        if bool(self.algorithm.kl_coefficient) != (samples.reference_logprobs is not None):
            raise ValueError("reference_logprobs must be given if, and only if, the loss has a KL term")
        if self.algorithm.needs_values != (samples.value_targets is not None):
            raise ValueError("value_targets must be given if, and only if, the algorithm has values")
        return samples
