"""Log-probabilities and values of samples that are computed once per step, before its updates.

Three policies score a sampled token. The *behaviour* policy sampled it: its log-probabilities come from the
engine and are stored with the tokens. The *proximal* policy is the learner's before the updates of the step.
It has the same weights (with ``training.lag``, those of a later step), but not always the same numbers,
since the engine computes and rounds in its own way. The *reference* policy is the start policy, which a KL
term pulls towards. The current policy is the fourth; its log-probabilities change with every update and are
not stored. If the algorithm asks for values, such a pass also computes the values of the samples' states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

from skillpress.core.columns import members
from skillpress.core.logprobs import Logprobs
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import Scorer
from skillpress.training.algorithms.batch import Batch, Floats, Indices
from skillpress.training.loop.model_pass import Pass, passes

Score = Callable[..., tuple[torch.Tensor, ...]]
"""A scorer: from responses and a temperature to ([tokens] log-probabilities, [tokens] entropies). With a
value head it also takes the number of steps made before each response and returns [responses] values."""


@dataclass(frozen=True)
class ScoringPasses:
    """Scores samples in passes like those of an update, so that only the weights can differ."""

    temperature: float
    token_limit: int
    """The most tokens of one pass."""
    device: torch.device | str
    shared: bool = True
    """Whether a prompt that several responses follow goes through the model once."""
    in_step: Callable[[list[Pass]], list[Pass]] = lambda passes: passes
    """Adds passes if ranks must make the same number; scores of added passes are dropped."""

    def logprobs(self, score: Score, samples: Batch) -> Logprobs:
        """[tokens] the log-probabilities of the responses."""
        found = list(self._scored(samples, lambda each: score(each.responses, self.temperature)))
        return by_sample(samples, [rows for rows, _ in found], [logprobs for _, (logprobs, *_) in found])

    def values(self, score: Score, samples: Batch) -> Floats:
        """[samples] V of the state of each, from a scorer with a value head."""
        found = np.zeros(len(samples))

        def valued(each: Pass) -> tuple[torch.Tensor, ...]:
            made = torch.tensor(each.batch.made, dtype=torch.float32, device=self.device)
            return score(each.responses, self.temperature, made=made)

        for rows, (_, _, values) in self._scored(samples, valued):
            found[rows] = values.cpu().numpy()
        return found

    def _scored(
        self, samples: Batch, score: Callable[[Pass], tuple[torch.Tensor, ...]]
    ) -> Iterator[tuple[Indices, tuple[torch.Tensor, ...]]]:
        """The rows of each pass and their scores, without the passes that ``in_step`` added."""
        rows, parts = passes(samples, self.token_limit, self.device, self.shared)
        for index, each in enumerate(self.in_step(parts)):
            with torch.no_grad():
                scored = score(each)
            if index < len(rows):
                yield rows[index], scored


def by_sample(samples: Batch, rows: Sequence[Indices], scored: Sequence[torch.Tensor]) -> Logprobs:
    """[tokens] log-probabilities in the order of the samples.

    Args:
        rows: the rows of each pass.
        scored: [tokens of the pass] of each; further passes, without rows, are ignored.
    """
    found = np.zeros_like(samples.logprobs)
    for some, logprobs in zip(rows, scored, strict=False):
        found[members(some, samples.tokens)] = logprobs.float().cpu().numpy()
    return found


class ReferencePolicy:
    """The start policy; its weights are on the device while it scores and on the CPU otherwise."""

    def __init__(
        self, model: PreTrainedModel, temperature: float, token_limit: int, device: torch.device
    ) -> None:
        """Copy the current model."""
        self._scorer: Scorer = choose_scorer(copy_model(model)).requires_grad_(False).to("cpu")
        self._passes = ScoringPasses(
            temperature=temperature,
            token_limit=token_limit,
            device=device,
            shared=self._scorer.shares_prompts,
        )

    def logprobs(self, parts: Sequence[Batch]) -> list[Logprobs]:
        """The log-probabilities of each part; every rank scores its own, without communication."""
        self._scorer.to(self._passes.device)
        found = [self._passes.logprobs(self._scorer, part) for part in parts]
        self._scorer.to("cpu")
        return found
