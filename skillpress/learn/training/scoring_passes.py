"""Log-probabilities and values of samples that are computed once per step, before its updates.

Three policies score a sampled token. The *behaviour* policy sampled it: its log-probabilities come from the
engine and stand beside the tokens. The *proximal* policy is the learner's before the updates of the step: the
same weights (with ``training.lag`` 1, those of one step later), but not always the same numbers, since the
engine rounds and computes in its own way. The
*reference* policy is the start policy, which a KL term pulls towards. The current policy is the fourth; its
log-probabilities change with every update and are kept nowhere. Where the algorithm asks for values, those of
the samples' states come out of such a pass too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

from skillpress.core.logprobs import Logprobs
from skillpress.learn.algorithms.batch import Floats, Indices, members
from skillpress.learn.training.samples import Microbatch, Samples, pack
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import Scorer, choose_scorer

Score = Callable[..., tuple[torch.Tensor, ...]]
"""What a scorer does with responses and a temperature: ([tokens] log-probabilities, [tokens] entropies), and
[responses] values where it has a value head, which is told the steps made before each too."""


@dataclass(frozen=True)
class ScoringPasses:
    """How samples pass through a model to be scored: as in an update on them, so that nothing but the weights
    can differ."""

    temperature: float
    token_limit: int
    """Tokens in one pass at most."""
    device: torch.device | str
    shared: bool = True
    """Whether a prompt that several responses follow goes through the model once."""
    in_step: Callable[[list[Microbatch]], list[Microbatch]] = lambda batches: batches
    """Adds passes where ranks must make equally many; what those score is left out."""

    def logprobs(self, score: Score, samples: Samples) -> Logprobs:
        """[tokens] the log-probabilities of the responses."""
        found = np.zeros_like(samples.logprobs)
        for rows, scored in self._passes(samples, lambda batch: score(batch.responses, self.temperature)):
            found[members(rows, samples.lengths)] = scored[0].float().cpu().numpy()
        return found

    def values(self, score: Score, samples: Samples) -> Floats:
        """[samples] V of the state of each, by a scorer with a value head.

        Args:
            samples: with targets, of which what the head sees beside the states is read.
        """
        found = np.zeros(len(samples))

        def valued(batch: Microbatch) -> tuple[torch.Tensor, ...]:
            assert batch.targets is not None
            return score(batch.responses, self.temperature, made=batch.targets.made)

        for rows, scored in self._passes(samples, valued):
            found[rows] = scored[2].cpu().numpy()
        return found

    def _passes(
        self, samples: Samples, score: Callable[[Microbatch], tuple[torch.Tensor, ...]]
    ) -> Iterator[tuple[Indices, tuple[torch.Tensor, ...]]]:
        """The rows of each pass and what the scorer made of them, without those that ``in_step`` added."""
        parts = list(pass_rows(samples.pairs, self.token_limit, self.shared))
        batches = self.in_step([pack(samples.select(rows), self.device) for rows in parts])
        for index, batch in enumerate(batches):
            with torch.no_grad():
                scored = score(batch)
            if index < len(parts):
                yield parts[index], scored


class ReferencePolicy:
    """The start policy; its weights are on the device while it scores and on the CPU otherwise."""

    def __init__(
        self, model: PreTrainedModel, temperature: float, token_limit: int, device: torch.device
    ) -> None:
        """Copy the model as it is now."""
        self._scorer: Scorer = choose_scorer(copy_model(model)).requires_grad_(False).to("cpu")
        self._passes = ScoringPasses(temperature, token_limit, device, self._scorer.shares_prompts)

    def logprobs(self, parts: Sequence[Samples]) -> list[Logprobs]:
        """Of each part; every rank scores its own, without a word to the others."""
        self._scorer.to(self._passes.device)
        found = [self._passes.logprobs(self._scorer, part) for part in parts]
        self._scorer.to("cpu")
        return found
