"""From trajectories to training samples: every step is one, conditioned on its own state.

A sample is a step's exact prompt and response tokens with their sampling log-probabilities and the
trajectory's advantage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.policy.scoring import Responses, pack_responses
from skillpress.trajectory import Step, Trajectory


@dataclass(frozen=True)
class Samples:
    """Steps to train on, with what the loss needs beside their tokens."""

    steps: tuple[Step, ...]
    advantages: NDArray[np.float64]
    """[samples]."""
    weights: NDArray[np.float64]
    """[samples] weight of each of the sample's tokens in the loss of its update."""

    def __len__(self) -> int:
        return len(self.steps)

    def select(self, rows: NDArray[np.int64]) -> Samples:
        """The samples in these rows."""
        return Samples(tuple(self.steps[r] for r in rows), self.advantages[rows], self.weights[rows])


@dataclass(frozen=True)
class Microbatch:
    """One forward pass, and what the loss needs per response token."""

    responses: Responses
    old_logprobs: torch.Tensor
    """[tokens] log-probabilities under the sampling distribution."""
    advantages: torch.Tensor
    weights: torch.Tensor


def step_samples(
    trajectories: Sequence[Trajectory], advantages: NDArray[np.float64]
) -> tuple[tuple[Step, ...], NDArray[np.float64]]:
    """All steps in order, and [steps] the advantage of the trajectory each belongs to.

    A step at which nothing was sampled (its prompt did not fit) is no sample.
    """
    sampled = [[step for step in trajectory.steps if step.response_ids] for trajectory in trajectories]
    steps = tuple(step for steps in sampled for step in steps)
    return steps, np.repeat(advantages, [len(steps) for steps in sampled])


def microbatches(samples: Samples, token_limit: int, device: torch.device | str) -> Iterator[Microbatch]:
    """Forward passes of at most ``token_limit`` tokens (or of one sample that is longer than that).

    Samples are sorted by the length of their prompts and by the prompts, so that equal prompts meet
    in one pass and little is padded.
    """
    steps = samples.steps
    rows: list[int] = []
    prompts: set[tuple[int, ...]] = set()
    longest = 0
    for row in sorted(range(len(steps)), key=lambda r: (len(steps[r].prompt_ids), steps[r].prompt_ids)):
        prompt, response = steps[row].prompt_ids, len(steps[row].response_ids) - 1
        size = len(prompts | {prompt}) * len(prompt) + (len(rows) + 1) * max(longest, response)
        if rows and size > token_limit:
            yield pack(samples.select(np.array(rows)), device)
            rows, prompts, longest = [], set(), 0
        rows.append(row)
        prompts.add(prompt)
        longest = max(longest, response)
    if rows:
        yield pack(samples.select(np.array(rows)), device)


def pack(samples: Samples, device: torch.device | str) -> Microbatch:
    """One microbatch of all these samples."""
    steps = samples.steps
    counts = np.array([len(step.response_ids) for step in steps])

    def per_token(values: NDArray[np.float64]) -> torch.Tensor:
        return torch.tensor(np.repeat(values, counts), dtype=torch.float32, device=device)

    logprobs = [logprob for step in steps for logprob in step.logprobs]
    return Microbatch(
        pack_responses([(step.prompt_ids, step.response_ids) for step in steps], device),
        torch.tensor(logprobs, dtype=torch.float32, device=device),
        per_token(samples.advantages),
        per_token(samples.weights),
    )
