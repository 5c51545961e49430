"""Truncated importance weights for tokens whose engine probabilities differ from the learner's.

An engine and the learner round differently. So the policy that sampled (behaviour) differs slightly from the
policy whose update is computed (proximal), although both have the same weights; with ``training.lag`` the
weights that draw tokens are some steps older. To correct the surrogate, each token's term is multiplied by
the ratio of the two probabilities. A cap keeps one unlikely token from dominating an update (truncated
importance sampling, Ionides 2008):

    token      omega_t = min(pi^prox(v_t) / pi^behave(v_t), cap)
    sequence   omega_t = min(product of these ratios over the response, cap), for each of its tokens

If no ratio reaches the cap, ``sequence`` makes the expectation exact and has the larger variance; ``token``
ignores that earlier tokens were also sampled with other probabilities. The weights are constants of a step,
so they multiply advantages: min(rho A, clip(rho) A) omega = min(rho (omega A), clip(rho) (omega A)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Floats, Indices

Importance = Literal["none", "token", "sequence"]
"""Unit over which a ratio is taken; ``none`` treats the engine's probabilities as the learner's."""


@dataclass(frozen=True)
class TruncatedImportance:
    """omega of every sampled token."""

    level: Literal["token", "sequence"]
    cap: float
    """The largest weight; at least 1."""

    def __call__(self, log_ratios: Floats, lengths: Indices) -> Floats:
        """[tokens] weights in (0, cap].

        Args:
            log_ratios: [tokens] log pi^prox - log pi^behave, response by response.
            lengths: [responses] number of tokens of each response, at least 1.
        """
        # Cut before the exponential, which would overflow for a long response.
        weights: Floats = np.exp(np.minimum(self._logs(log_ratios, lengths), np.log(self.cap)))
        return weights

    def truncated(self, log_ratios: Floats, lengths: Indices) -> NDArray[np.bool_]:
        """[tokens] True where the cap has cut the weight."""
        found: NDArray[np.bool_] = self._logs(log_ratios, lengths) > np.log(self.cap)
        return found

    def _logs(self, log_ratios: Floats, lengths: Indices) -> Floats:
        """[tokens] the logarithm of each ratio before it is cut."""
        if self.level == "token":
            return log_ratios
        return np.repeat(sequence_log_ratios(log_ratios, lengths), lengths)


def sequence_log_ratios(log_ratios: Floats, lengths: Indices) -> Floats:
    """[responses] the sum over each response's tokens."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    return np.bincount(owners, log_ratios, minlength=len(lengths)).astype(np.float64)


class Corrected(Algorithm):
    """An algorithm that takes ratios against the learner before the step if ``importance`` asks for it."""

    corrects_staleness: ClassVar[bool] = True  # ratios, or omega, compare with the weights that sampled

    importance: Importance
    """Weights for an engine that rounds differently: none, token or sequence."""
    importance_cap: Annotated[float, Field(ge=1)]
    """The largest importance weight."""

    @property
    def importance_weights(self) -> TruncatedImportance | None:
        """The weights that ``importance`` asks for; None for ``none``."""
        level = self.importance
        return None if level == "none" else TruncatedImportance(level, self.importance_cap)
