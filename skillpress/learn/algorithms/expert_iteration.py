"""Expert iteration: the policy imitates its own successes (Anthony et al. 2017; for language models STaR,
Zelikman et al. 2022, and ReST-EM, Singh et al. 2024).

    a_k = max(score_k, 0) / largest core reward where the episode succeeded, else 0
    L   = - sum over the tokens of steps with a_k > 0 of a_k logp_t / (number of these tokens) + KL term

It is behaviour cloning on the episodes that a filter lets through, the filter being success. A plain success
has a = 1; what its return lacks, for shaping or for a penalty, it weighs less, and never less than nothing.
Failures teach nothing, and neither does how a task's other rollouts did: no group, no baseline, no ratio. Any
number of updates per batch is one more pass of supervised learning, so that it needs no fresh samples.

The loss divides by the tokens that teach and not by all that were sampled, or a step with few successes would
hardly move the policy. As weights w_t = 1 / (all tokens) are the house's, advantages are A_k = a_k * (all
tokens) / (tokens that teach). The share of tokens that teach is the metric ``imitated``. What is left out:
training each iteration from the start policy anew, and search or hints that make successes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.learn.algorithms.parameters import AlgorithmParameters
from skillpress.learn.algorithms.policy_gradient import PolicyGradient


class ExpertIterationParameters(AlgorithmParameters):
    """``algorithm: {name: expert_iteration, ...}``; it has no keys of its own."""

    smallest_group: ClassVar[int] = 1


@dataclass(frozen=True)
class ExpertIteration(Algorithm):
    """Filtered behaviour cloning."""

    Parameters: ClassVar[type[AlgorithmParameters]] = ExpertIterationParameters

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in failures."""
        worth = self._worth(batch)
        total = self._tokens(batch, add)
        scaled: Floats = worth * (total["sampled"] / max(total["imitated"], 1.0))
        return scaled

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """The share of tokens that teach; nothing where none was sampled."""
        total = self._tokens(batch, add)
        return {"imitated": total["imitated"] / total["sampled"]} if total["sampled"] else {}

    @property
    def loss(self) -> PolicyGradient:
        """The weighted likelihood of what was sampled, and the KL term."""
        return PolicyGradient(self.parameters.kl_coefficient)

    def _worth(self, batch: Batch) -> Floats:
        """[steps] a_k."""
        worth: Floats = np.maximum(batch.scores, 0.0) / batch.core_maximum * batch.won[batch.trajectory]
        return worth

    def _tokens(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """Tokens of the whole step: all that were ``sampled``, and those that are ``imitated``."""
        imitated = batch.tokens[self._worth(batch) > 0]
        return add({"sampled": float(batch.tokens.sum()), "imitated": float(imitated.sum())})
