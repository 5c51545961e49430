"""The distance between two policies' log-probabilities of the same responses, over all ranks.

One policy sampled (the engine's log-probabilities), the other scored (the learner's). Ratios are those of the
scorer's probability to the sampler's, of tokens and of whole responses. They differ because the engine rounds
differently, or because its weights are some steps older (``training.lag``).

If the algorithm asks for it, importance weights make up for the difference. Ratios are then taken against the
learner before the updates of the step (the proximal policy), and the importance weights multiply the
advantages. The first update scores its samples under that policy anyway (``own_scores.py``); samples of later
updates are scored before it (``policy_loss.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skillpress.core.logprobs import Logprobs
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import Batch, Floats, Indices
from skillpress.training.algorithms.importance_weights import TruncatedImportance, sequence_log_ratios

QUANTILES = {"p01": 0.01, "p50": 0.5, "p99": 0.99}
"""Name in a metric to the share of ratios below that quantile."""


@dataclass(frozen=True)
class LogRatios:
    """log p(learner) - log p(engine) of some responses."""

    tokens: Floats
    """[tokens], response by response."""
    lengths: Indices
    """[responses] tokens of each."""

    @classmethod
    def of(cls, samples: Batch, logprobs: Logprobs) -> LogRatios:
        """The log ratios of one rank's responses; ``logprobs`` [tokens] are the learner's."""
        # In float64, because the ratio of a response sums hundreds of these small differences.
        return cls(logprobs.astype(np.float64) - samples.logprobs, samples.tokens)

    def everybodys(self, ranks: Ranks) -> LogRatios:
        """The log ratios of all ranks; all ranks call this."""
        parts = ranks.gather([(self.tokens, self.lengths)])
        return LogRatios(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))

    def quantiles(self, prefix: str) -> dict[str, float]:
        """Quantiles of the ratios, as metrics; there must be at least one token."""
        kinds = {"token_ratio": self.tokens, "sequence_ratio": sequence_log_ratios(self.tokens, self.lengths)}
        return {
            f"{prefix}/{kind}_{name}": float(np.exp(np.quantile(logs, share)))
            for kind, logs in kinds.items()
            for name, share in QUANTILES.items()
        }


def proximal_ratios(later: Sequence[Batch]) -> list[LogRatios]:
    """The ratios of the samples of a step's later updates, which have proximal log-probabilities."""
    known = [(part, part.proximal_logprobs) for part in later]
    return [LogRatios.of(part, logprobs) for part, logprobs in known if logprobs is not None]


def importance_metrics(
    ratios: Sequence[LogRatios], importance: TruncatedImportance, ranks: Ranks
) -> dict[str, float]:
    """Quantiles of the ratios of a step and ``importance/truncated``, the share of tokens whose weight was
    cut, over all ranks, which all call this; empty if nothing is trained."""
    tokens = np.concatenate([np.zeros(0), *(each.tokens for each in ratios)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(each.lengths for each in ratios)])
    everything = LogRatios(tokens, lengths).everybodys(ranks)
    if not len(everything.tokens):
        return {}
    truncated = float(importance.truncated(everything.tokens, everything.lengths).mean())
    return {**everything.quantiles("importance"), "importance/truncated": truncated}
