"""A policy's scores of samples: log-probabilities, and values if it has a head for them.

Three policies score a sampled token once per step, before its updates. The *behaviour* policy sampled it: its
log-probabilities come from the engine and are stored with the tokens. The *proximal* policy is the learner's
before the updates of the step. It has the same weights (with ``training.lag``, those of a later step), but
not always the same numbers, since the engine computes and rounds in its own way. The *reference* policy is
the start policy, which a KL term pulls towards. The current policy is the fourth; its log-probabilities
change with every update and are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from skillpress.core.columns import members
from skillpress.core.logprobs import Logprobs
from skillpress.models.policy.scoring import on_device
from skillpress.training.algorithms.batch import Batch, Floats
from skillpress.training.loop.model_pass import Pass, passes

Score = Callable[..., tuple[torch.Tensor, ...]]
"""A scorer: from responses and a temperature to ([tokens] log-probabilities, [tokens] entropies). With a
value head it also takes the number of steps made before each response and returns [responses] values."""


def alone(passes: list[Pass]) -> list[Pass]:
    """The passes unchanged, for scores that involve no other rank."""
    return passes


@dataclass(frozen=True)
class ScoringPasses:
    """A policy that scores samples in passes like those of an update, so that only the weights can differ."""

    score: Score
    temperature: float
    token_limit: int
    """The most tokens of one pass."""
    device: torch.device | str
    shared: bool = True
    """Whether a prompt that several responses follow goes through the model once."""
    valued: bool = False
    """Whether the policy has a value head."""
    in_step: Callable[[list[Pass]], list[Pass]] = alone
    """Adds passes if ranks must make the same number; scores of added passes are dropped."""

    def __call__(self, each: Pass) -> tuple[torch.Tensor, ...]:
        """The scores of one pass: [tokens] log-probabilities and entropies, and [steps] values of a head."""
        if not self.valued:
            return self.score(each.responses, self.temperature)
        made = on_device(each.batch.made.astype(np.float32), self.device)
        return self.score(each.responses, self.temperature, made=made)

    def passes(self, samples: Batch) -> list[Pass]:
        """The samples as passes; every sample is in one."""
        return passes(samples, self.token_limit, self.device, self.shared)

    def logprobs(self, samples: Batch) -> Logprobs:
        """[tokens] the log-probabilities of the responses; all ranks call this if they are in step."""
        return by_sample(samples, [(each, logprobs) for each, (logprobs, *_) in self._scored(samples)])

    def values(self, samples: Batch) -> Floats:
        """[samples] V of each state; all ranks call this if they are in step. The policy must have a value
        head."""
        found = np.zeros(len(samples))
        for each, (_, _, values) in self._scored(samples):
            if each.rows is not None:
                found[each.rows] = values.cpu().numpy()
        return found

    def _scored(self, samples: Batch) -> Iterator[tuple[Pass, tuple[torch.Tensor, ...]]]:
        for each in self.in_step(self.passes(samples)):
            # Not around the ``yield``, which would turn gradients off in the caller's code too.
            with torch.no_grad():
                scores = self(each)
            yield each, scores


def by_sample(samples: Batch, scored: Iterable[tuple[Pass, torch.Tensor]]) -> Logprobs:
    """[tokens] log-probabilities in the order of the samples.

    Args:
        scored: passes with their [tokens] log-probabilities; passes that were added are left out.
    """
    found = np.zeros_like(samples.logprobs)
    for each, logprobs in scored:
        if each.rows is not None:
            # NumPy has no bfloat16.
            found[members(each.rows, samples.tokens)] = logprobs.float().cpu().numpy()
    return found
