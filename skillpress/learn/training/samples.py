"""From trajectories to training samples: every decision is one, conditioned on its own state.

A sample is a step's exact prompt and response tokens with their sampling log-probabilities and its
advantage, which may differ from token to token. Samples of one episode whose prompts extend one another pass
through the model as one sequence, for which they must stand beside each other, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.trajectory import Step, Trajectory
from skillpress.learn.algorithms.scored_tokens import ValueTargets
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import Responses, pack_responses

PerToken = tuple[NDArray[np.float32], ...]
"""Per sample an array [response tokens]."""


@dataclass(frozen=True)
class Samples:
    """Steps to train on, with what the loss needs beside their tokens."""

    steps: tuple[Step, ...]
    advantages: NDArray[np.float64]
    """[samples], or [samples, longest response] per token, the padding ignored."""
    weights: NDArray[np.float64]
    """[samples] weight of each of the sample's tokens in the loss of its update."""
    proximal_logprobs: PerToken | None = None
    """The learner's own log-probabilities before the step's updates; None where the engine's, which stand
    in the steps, serve in their place."""
    reference_logprobs: PerToken | None = None
    """Those of the start policy; None before they are computed, and where there is no KL term."""
    targets: ValueTargets[NDArray[np.float64]] | None = None
    """[samples] what the value of each one's state is to learn; None where the algorithm has no values."""
    trajectory: NDArray[np.int64] | None = None
    """[samples] the trajectory of each, under a number that no other has on any rank; None where the loss
    does not ask for whole trajectories. Where it does, the samples of one stay together, in order."""
    trajectory_sums: NDArray[np.float64] | None = None
    """[samples, 4] of each one's whole trajectory; None before an update, see ``trajectory_ratios.py``."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def with_advantage(self) -> NDArray[np.int64]:
        """The rows in which some token has an advantage other than 0, or has one in their trajectory."""
        teaching = some_advantage(self.advantages)
        if self.trajectory is not None:
            teaching = np.isin(self.trajectory, self.trajectory[teaching])
        return np.nonzero(teaching)[0]

    def select(self, rows: NDArray[np.int64]) -> Samples:
        """The samples in these rows."""
        return Samples(
            steps=tuple(self.steps[r] for r in rows),
            advantages=self.advantages[rows],
            weights=self.weights[rows],
            proximal_logprobs=_rows(self.proximal_logprobs, rows),
            reference_logprobs=_rows(self.reference_logprobs, rows),
            targets=None if self.targets is None else self.targets.map(lambda values: values[rows]),
            trajectory=None if self.trajectory is None else self.trajectory[rows],
            trajectory_sums=None if self.trajectory_sums is None else self.trajectory_sums[rows],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """The samples of all parts, in order, before any of them is scored."""
        return cls(
            steps=tuple(step for part in parts for step in part.steps),
            advantages=np.concatenate(_as_wide([part.advantages for part in parts])),
            weights=np.concatenate([part.weights for part in parts]),
            targets=_joined_targets([part.targets for part in parts]),
            trajectory=_joined([part.trajectory for part in parts]),
        )


@dataclass(frozen=True)
class Microbatch:
    """One forward pass, and what the loss needs per response token."""

    responses: Responses
    old_logprobs: torch.Tensor
    """[tokens] what ratios are taken against: proximal where they were computed, else the engine's."""
    advantages: torch.Tensor
    weights: torch.Tensor
    response: torch.Tensor
    """[tokens] the sample that each belongs to, counted from 0."""
    reference_logprobs: torch.Tensor | None
    """[tokens]; None where there is no KL term."""
    targets: ValueTargets[torch.Tensor] | None
    """[samples]; None where the algorithm has no values."""
    trajectory_sums: torch.Tensor | None
    """[tokens, 4]; None where the loss does not ask for whole trajectories."""


def _rows(values: PerToken | None, rows: NDArray[np.int64]) -> PerToken | None:
    return None if values is None else tuple(values[row] for row in rows)


def _joined_targets(
    parts: Sequence[ValueTargets[NDArray[np.float64]] | None],
) -> ValueTargets[NDArray[np.float64]] | None:
    """All of them, or None where there are none."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    return ValueTargets(
        old=np.concatenate([part.old for part in there]),
        returns=np.concatenate([part.returns for part in there]),
        weights=np.concatenate([part.weights for part in there]),
        made=np.concatenate([part.made for part in there]),
    )


def _joined(parts: Sequence[NDArray[np.int64] | None]) -> NDArray[np.int64] | None:
    """All of them, or None where there are none."""
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there else None


def _as_wide(advantages: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """The arrays, those per token padded to the longest response of all."""
    if all(part.ndim == 1 for part in advantages):
        return list(advantages)
    width = max(part.shape[1] for part in advantages)
    return [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in advantages]


def some_advantage(advantages: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[rows] whether some token of each has an advantage other than 0."""
    nonzero: NDArray[np.bool_] = advantages != 0
    return nonzero if nonzero.ndim == 1 else np.any(nonzero, axis=1)


def step_samples(
    trajectories: Sequence[Trajectory], advantages: NDArray[np.float64]
) -> tuple[tuple[Step, ...], NDArray[np.float64]]:
    """All decisions in order at which something was sampled, and their rows of ``advantages``.

    One at which nothing was sampled (its prompt did not fit) is no sample.
    """
    steps = [step for trajectory in trajectories for step in trajectory.decisions]
    sampled = [row for row, step in enumerate(steps) if step.response_ids]
    return tuple(steps[row] for row in sampled), advantages[sampled]


def sample_trajectories(trajectories: Sequence[Trajectory]) -> NDArray[np.int64]:
    """[samples] the trajectory that each of ``step_samples`` belongs to, counted from 0."""
    sampled = [sum(1 for step in each.decisions if step.response_ids) for each in trajectories]
    return np.repeat(np.arange(len(trajectories)), sampled)


def microbatches(
    samples: Samples, token_limit: int, device: torch.device | str, shared: bool = True
) -> Iterator[Microbatch]:
    """The samples as forward passes, see :func:`microbatch_rows`."""
    return (pack(samples.select(rows), device) for rows in microbatch_rows(samples, token_limit, shared))


def microbatch_rows(samples: Samples, token_limit: int, shared: bool = True) -> Iterator[NDArray[np.int64]]:
    """Which samples share a forward pass, see ``policy/passes.py``."""
    pairs = [(step.prompt_ids, step.response_ids) for step in samples.steps]
    return pass_rows(pairs, token_limit, shared)


def by_token(values: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """[tokens] of [samples], or of [samples, at least the longest response] with padding."""
    if values.ndim == 1:
        return np.repeat(values, counts)
    found: NDArray[np.float64] = values[np.arange(values.shape[1]) < counts[:, None]]
    return found


def pack(samples: Samples, device: torch.device | str) -> Microbatch:
    """One microbatch of all these samples."""
    steps = samples.steps
    counts = np.array([len(step.response_ids) for step in steps])

    def tensor(values: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=device)

    def per_token(values: NDArray[np.float64]) -> torch.Tensor:
        return tensor(by_token(values, counts))

    def joined(values: PerToken) -> torch.Tensor:
        return tensor(np.concatenate(values))

    sums = samples.trajectory_sums
    behaviour = [np.array(step.logprobs, np.float32) for step in steps]
    return Microbatch(
        responses=pack_responses([(step.prompt_ids, step.response_ids) for step in steps], device),
        old_logprobs=joined(samples.proximal_logprobs or tuple(behaviour)),
        advantages=per_token(samples.advantages),
        weights=per_token(samples.weights),
        response=torch.tensor(np.repeat(np.arange(len(counts)), counts), device=device),
        reference_logprobs=None if samples.reference_logprobs is None else joined(samples.reference_logprobs),
        targets=None if samples.targets is None else samples.targets.map(tensor),
        trajectory_sums=None
        if sums is None
        else torch.tensor(np.repeat(sums, counts, axis=0), device=device),
    )
