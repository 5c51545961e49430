"""From trajectories to training samples: every step is one, conditioned on its own state.

A sample is a step's exact prompt and response tokens with their sampling log-probabilities and the
trajectory's advantage. Microbatches are padded on the right: under a causal mask the padding behind
a sample is invisible to it, so no attention mask is needed, and logits are computed only where
response tokens are predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

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
    """One forward pass: [rows, width] tokens, and everything else per response token."""

    input_ids: torch.Tensor
    """[rows, width] prompt and response, padded on the right; the last response token is left out."""
    predicting: torch.Tensor
    """[tokens] flat positions in ``input_ids`` whose next token is a response token."""
    targets: torch.Tensor
    """[tokens] the response tokens."""
    old_logprobs: torch.Tensor
    advantages: torch.Tensor
    weights: torch.Tensor


def step_samples(
    trajectories: Sequence[Trajectory], advantages: NDArray[np.float64]
) -> tuple[tuple[Step, ...], NDArray[np.float64]]:
    """All steps in order, and [steps] the advantage of the trajectory each belongs to."""
    steps = tuple(step for trajectory in trajectories for step in trajectory.steps)
    return steps, np.repeat(advantages, [len(trajectory.steps) for trajectory in trajectories])


def microbatches(samples: Samples, token_limit: int, device: torch.device | str) -> Iterator[Microbatch]:
    """Samples sorted by length and packed into forward passes of at most ``token_limit`` tokens."""
    lengths = np.array([len(s.prompt_ids) + len(s.response_ids) for s in samples.steps], dtype=np.int64)
    rows: list[int] = []
    for row in np.argsort(lengths, kind="stable").tolist():
        if rows and (len(rows) + 1) * int(lengths[row]) > token_limit:
            yield pack(samples.select(np.array(rows)), device)
            rows = []
        rows.append(row)
    if rows:
        yield pack(samples.select(np.array(rows)), device)


def pack(samples: Samples, device: torch.device | str) -> Microbatch:
    """One microbatch of all these samples."""
    steps = samples.steps
    responses = np.array([len(step.response_ids) for step in steps])
    width = max(len(step.prompt_ids) + len(step.response_ids) - 1 for step in steps)
    input_ids = np.zeros((len(steps), width), dtype=np.int64)
    predicting = []
    for row, step in enumerate(steps):
        tokens = step.prompt_ids + step.response_ids[:-1]
        input_ids[row, : len(tokens)] = tokens
        first = row * width + len(step.prompt_ids) - 1
        predicting.append(np.arange(first, first + len(step.response_ids)))

    def per_token(values: NDArray[np.float64]) -> torch.Tensor:
        return torch.tensor(np.repeat(values, responses), dtype=torch.float32, device=device)

    return Microbatch(
        torch.from_numpy(input_ids).to(device),
        torch.from_numpy(np.concatenate(predicting)).to(device),
        torch.tensor([t for step in steps for t in step.response_ids], device=device),
        torch.tensor([p for step in steps for p in step.logprobs], dtype=torch.float32, device=device),
        per_token(samples.advantages),
        per_token(samples.weights),
    )
