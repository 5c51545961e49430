"""Corrects samples whose probabilities differ from the learner's, if the algorithm asks for it: because the
engine rounds differently, or because its weights are one step older (``training.lag``).

The learner scores the samples before the updates of the step (the proximal policy). Ratios are then taken
against these scores, and the algorithm's importance weights multiply the advantages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skillpress.learn.algorithms.importance_weights import TruncatedImportance
from skillpress.learn.training.learner import Learner
from skillpress.learn.training.log_ratios import LogRatios
from skillpress.learn.training.samples import Samples
from skillpress.play.workers.distributed import Ranks


def correct(
    parts: Sequence[Samples], importance: TruncatedImportance, learner: Learner, ranks: Ranks
) -> tuple[list[Samples], dict[str, float]]:
    """The samples of a step with proximal log-probabilities and weighted advantages, and metrics.

    All ranks call this with equally many parts. The metrics, of all ranks, are quantiles of the ratios and
    ``importance/truncated``, the share of tokens whose weight was cut; empty if nothing is trained.
    """
    scored = [replace(part, proximal_logprobs=learner.own_logprobs(part)) for part in parts]
    ratios = [
        LogRatios.of(part, part.proximal_logprobs) for part in scored if part.proximal_logprobs is not None
    ]
    weighted = [
        replace(part, advantages=part.advantages * importance(each.tokens, each.lengths))
        for part, each in zip(scored, ratios, strict=True)
    ]
    tokens = np.concatenate([each.tokens for each in ratios])
    lengths = np.concatenate([each.lengths for each in ratios])
    everything = LogRatios(tokens, lengths).everybodys(ranks)
    if not len(everything.tokens):
        return weighted, {}
    truncated = float(importance.truncated(everything.tokens, everything.lengths).mean())
    return weighted, {**everything.quantiles("importance"), "importance/truncated": truncated}
