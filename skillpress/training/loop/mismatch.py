"""Every step checks before its updates that the engine samples from the policy that the learner trains.

In an on-policy step, engine and learner have the same weights, those of the last update, and each computes
its own log-probabilities of the sampled tokens. (With a lag, only the first step and each step after
a checkpoint are on-policy as a whole; samples with a token of older weights differ for another reason and are
left out.) The first update of a step scores its samples anyway, under the weights that sampled them: these
scores are compared before the optimizer changes anything, so the check costs no pass through the model. The
differences are logged, and if they exceed rounding, training ends: with wrong log-probabilities every ratio
is wrong, although nothing looks broken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skillpress.core.columns import members
from skillpress.core.errors import UserError
from skillpress.core.logprobs import Logprobs
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.log_ratios import LogRatios


class MismatchError(UserError):
    """The engine's log-probabilities are not the learner's."""


@dataclass(frozen=True)
class MismatchCheck:
    """Compares engine and learner on the responses of a step's first update."""

    ranks: Ranks
    limit: float
    """The largest allowed mean over tokens of the absolute difference, in nats."""
    exact: bool
    """Whether the engine promises the learner's log-probabilities up to rounding."""

    def __call__(self, samples: Batch, logprobs: Logprobs, step: int) -> dict[str, float]:
        """Metrics of training step ``step``; empty if no rank has a response of the learner's weights.

        Args:
            samples: this rank's samples, with their age.
            logprobs: [tokens] under the learner's current weights.

        Raises:
            MismatchError: the difference is above the limit; raised on every rank.
        """
        assert samples.age is not None
        fresh = np.flatnonzero(samples.age == 0)
        scores = logprobs[members(fresh, samples.tokens)]
        # All ranks judge the same numbers: one rank that stopped alone would leave the others waiting.
        found = LogRatios.of(samples.cut(fresh), scores).everybodys(self.ranks)
        if not len(found.tokens):
            return {}
        differences = np.abs(found.tokens)
        mean, largest = float(differences.mean()), float(differences.max())
        # Not ``mean > limit``, which is false for NaN.
        if not mean <= self.limit:
            raise MismatchError(self._message(step, len(found.lengths), mean, largest))
        return {"mismatch/mean": mean, "mismatch/largest": largest, **found.quantiles("mismatch")}

    def _message(self, step: int, responses: int, mean: float, largest: float) -> str:
        return (
            f"training.mismatch_limit is {self.limit:g}: in training step {step} the log-probabilities of "
            f"the engine differ from the learner's by {mean:.3g} nats a token (mean over {responses} "
            f"responses; the largest {largest:.3g}), so importance ratios would be wrong. Likely causes: "
            "weights that did not reach the engine, or not all of them (tied output embeddings are easily "
            "left out); "
            "log-probabilities before temperature, or renormalised over top-p or top-k. bfloat16, in "
            f"{'training.deepspeed' if self.exact else 'policy.dtype or training.deepspeed'}, alone explains "
            "about 0.04: if that is the cause, raise the limit"
        )
