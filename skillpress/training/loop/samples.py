"""Training samples, made from trajectories: every decision is one, conditioned on its own state.

A sample is a decision's exact prompt and response tokens, with the loss's inputs for each response token. All
samples of a rank are one set of arrays; arrays over tokens go response by response:

    [samples]   pairs (prompt, response), weights, targets, trajectory
    [tokens]    log-probabilities of engine, learner and start policy; advantages

``select`` takes rows of all arrays. So the arrays are built once per step, and minibatches, passes through
the model, and samples sent to another rank are rows of them. Samples of one episode whose prompts extend one
another pass through the model as one sequence. For that they must be neighbours, so the samples of an episode
are in the order of their chains, which may differ from the order of time (``policy/chains.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.logprobs import NO_LOGPROBS, Logprobs
from skillpress.core.trajectory import Step, TokenIds, Trajectory
from skillpress.models.policy.chains import Pairs
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import Responses, pack_responses
from skillpress.training.algorithms.batch import Floats, Indices, members
from skillpress.training.algorithms.scored_tokens import ScoredTokens, ValueTargets


@dataclass(frozen=True)
class Samples:
    """Decisions to train on, as arrays."""

    pairs: Pairs
    """[samples] prompt and response of each."""
    logprobs: Logprobs
    """[tokens] the engine's log-probabilities."""
    advantages: Floats
    """[tokens] advantages."""
    weights: Floats
    """[samples] weight of each token of the sample in the loss of its update."""
    proximal_logprobs: Logprobs | None = None
    """[tokens] the learner's log-probabilities before the step's updates; NaN where the update's own pass has
    them (``own_scores.py``), None where the engine's are used instead."""
    reference_logprobs: Logprobs | None = None
    """[tokens] the start policy's log-probabilities, NaN where ``kl_factors`` is 0; None before they are
    computed, and without a KL term."""
    kl_factors: Floats | None = None
    """[samples] 1 over the probability that the start policy scores each sample, 0 where it does not; None
    if it scores all samples, and without a KL term. See ``kl_share.py``."""
    targets: ValueTargets[Floats] | None = None
    """[samples] targets for the values of their states; None where the algorithm has no values."""
    trajectory: Indices | None = None
    """[samples] the number of each sample's trajectory, unique over all ranks; None if the loss does not ask
    for whole trajectories. If it does, the samples of a trajectory stay together, in order."""
    trajectory_sums: Floats | None = None
    """[samples, 4] the sums of each sample's whole trajectory; NaN where the update's own pass has them
    (``own_scores.py``), None before an update."""
    plain_prompts: tuple[TokenIds, ...] | None = None
    """[samples] the prompts in which lessons are learned; None where these are rollouts."""
    age: Indices | None = None
    """[samples] training steps by which the oldest weights that drew a token of each are behind the
    learner's; None before a step sets it, and for lessons."""

    @classmethod
    def of(
        cls,
        steps: Sequence[Step],
        advantages: Floats | None = None,
        weights: Floats | None = None,
        targets: ValueTargets[Floats] | None = None,
        trajectory: Indices | None = None,
    ) -> Samples:
        """Decisions at which something was sampled.

        Args:
            advantages: [samples], or [samples, at least the longest response] per token; the padding is
                ignored. None means 0, for samples that are only scored.
            weights: [samples]; None means 0 too.
        """
        pairs, nothing = (
            Pairs.of([(step.prompt_ids, step.response_ids) for step in steps]),
            np.zeros(len(steps)),
        )
        return cls(
            pairs=pairs,
            logprobs=np.concatenate([NO_LOGPROBS, *(step.logprobs for step in steps)]),
            advantages=by_token(nothing if advantages is None else advantages, pairs.response_lengths),
            weights=nothing if weights is None else weights,
            targets=targets,
            trajectory=trajectory,
        )

    @classmethod
    def of_lessons(cls, steps: Sequence[Step], weights: Floats | None = None) -> Samples:
        """Decisions of further attempts, each with a plain prompt; all their tokens have advantage 1."""
        samples = cls.of(steps, np.ones(len(steps)), weights)
        return replace(samples, plain_prompts=tuple(step.plain_prompt_ids or () for step in steps))

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def lengths(self) -> Indices:
        """[samples] number of response tokens."""
        return self.pairs.response_lengths

    @property
    def with_advantage(self) -> Indices:
        """The rows with an advantage other than 0 at some token, their own or their trajectory's, and those
        that are drawn for the KL term."""
        sample = np.repeat(np.arange(len(self)), self.lengths)
        teaching = np.zeros(len(self), np.bool_)
        teaching[sample[self.advantages != 0]] = True
        if self.kl_factors is not None:
            teaching |= self.kl_factors > 0
        if self.trajectory is not None:
            teaching = np.isin(self.trajectory, self.trajectory[teaching])
        return np.nonzero(teaching)[0]

    @property
    def drawn_for_kl(self) -> Indices:
        """The rows that the start policy scores for a KL term."""
        return np.arange(len(self)) if self.kl_factors is None else np.flatnonzero(self.kl_factors)

    def select(self, rows: Indices) -> Samples:
        """The samples in these rows."""
        tokens = members(rows, self.lengths)
        return Samples(
            pairs=self.pairs.select(rows),
            logprobs=self.logprobs[tokens],
            advantages=self.advantages[tokens],
            weights=self.weights[rows],
            proximal_logprobs=None if self.proximal_logprobs is None else self.proximal_logprobs[tokens],
            reference_logprobs=None if self.reference_logprobs is None else self.reference_logprobs[tokens],
            kl_factors=None if self.kl_factors is None else self.kl_factors[rows],
            targets=None if self.targets is None else self.targets.map(lambda values: values[rows]),
            trajectory=None if self.trajectory is None else self.trajectory[rows],
            trajectory_sums=None if self.trajectory_sums is None else self.trajectory_sums[rows],
            plain_prompts=None if self.plain_prompts is None else tuple(self.plain_prompts[r] for r in rows),
            age=None if self.age is None else self.age[rows],
        )

    def made(self, device: torch.device | str) -> torch.Tensor:
        """[samples] k, the steps that the episode had made before each; the samples must have targets."""
        assert self.targets is not None
        return torch.tensor(self.targets.made, dtype=torch.float32, device=device)

    def scored(self, logprobs: torch.Tensor, values: torch.Tensor | None = None) -> ScoredTokens:
        """The input of a loss, on the device of ``logprobs``.

        Args:
            logprobs: [tokens] of the samples under the current weights.
            values: [samples] of their states; None where the algorithm has no values.
        """
        old = self.logprobs if self.proximal_logprobs is None else self.proximal_logprobs
        sample = np.repeat(np.arange(len(self)), self.lengths)

        def tensor(array: NDArray[Any]) -> torch.Tensor:
            return torch.tensor(array, dtype=torch.float32, device=logprobs.device)

        sums = None if self.trajectory_sums is None else self.trajectory_sums[sample]
        factors = self.kl_factors
        return ScoredTokens(
            logprobs=logprobs,
            old_logprobs=tensor(old),
            advantages=tensor(self.advantages),
            weights=tensor(self.weights[sample]),
            response=torch.tensor(sample, device=logprobs.device),
            reference_logprobs=None if self.reference_logprobs is None else tensor(self.reference_logprobs),
            kl_weights=None if factors is None else tensor((self.weights * factors)[sample]),
            values=values,
            targets=None if self.targets is None else self.targets.map(tensor),
            trajectory_sums=None if sums is None else torch.tensor(sums, device=logprobs.device),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """The samples of all parts, in order, before they are scored. All parts have the same kind of
        samples, or are empty."""
        targets = [part.targets for part in parts if part.targets is not None]
        numbers = [part.trajectory for part in parts if part.trajectory is not None]
        plain = [part.plain_prompts for part in parts if part.plain_prompts is not None]
        ages = [part.age for part in parts if part.age is not None]
        factors = [part.kl_factors for part in parts if part.kl_factors is not None]
        return cls(
            pairs=Pairs.joined([part.pairs for part in parts]),
            logprobs=np.concatenate([part.logprobs for part in parts]),
            advantages=np.concatenate([part.advantages for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            kl_factors=np.concatenate(factors) if factors else None,
            targets=ValueTargets.concatenate(targets) if targets else None,
            trajectory=np.concatenate(numbers) if numbers else None,
            plain_prompts=tuple(prompt for part in plain for prompt in part) if plain else None,
            age=np.concatenate(ages) if ages else None,
        )


Pass = tuple[Samples, Responses]
"""One pass through the model: its samples, and the same as the model reads them."""


def sampled_steps(trajectories: Sequence[Trajectory]) -> list[Step]:
    """All decisions at which something was sampled, in order. If a prompt did not fit, nothing was
    sampled."""
    return [step for trajectory in trajectories for step in trajectory.decisions if step.response_ids]


def passes(
    samples: Samples, token_limit: int, device: torch.device | str, shared: bool = True
) -> tuple[list[Indices], list[Pass]]:
    """The samples as passes through the model, and the rows of each; see ``policy/passes.py``."""
    rows = list(pass_rows(samples.pairs, token_limit, shared))
    parts = (samples.select(some) for some in rows)
    return rows, [(part, pack_responses(part.pairs, device)) for part in parts]


def by_token(values: Floats, counts: Indices) -> Floats:
    """[tokens] from values [samples], or from [samples, at least the longest response] with padding."""
    if values.ndim == 1:
        return np.repeat(values, counts)
    found: Floats = values[np.arange(values.shape[1]) < counts[:, None]]
    return found
