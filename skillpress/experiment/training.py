"""A whole training run as a job for ranks: from a start policy and tasks to a trained policy.

What a rank does stands in ``training_job.py``, which is imported in the ranks: the process that only waits
for them starts without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skillpress.params import Params
from skillpress.training.checkpoint import Checkpoints
from skillpress.workers.ranks import Report, free_port, run_ranks


@dataclass(frozen=True)
class TrainingJob:
    """What to train on and where everything lies."""

    params: Params
    tasks: Path
    """The training tasks."""
    validation: Path
    """The tasks by which the best step is found; played where ``training.keep`` is ``best``."""
    start: Path
    """The model folder to start from."""
    output: Path
    """The trained model's folder."""
    history: Path
    """The file for the dictionaries of all steps."""
    checkpoints: Checkpoints
    """Where an interrupted run goes on from; its key names all that decides the result."""


OnStep = Callable[[int, dict[str, float]], None]
"""Told (step, metrics) after every training step; of a resumed run, only the steps still to do."""


def train(job: TrainingJob, on_step: OnStep = lambda step, metrics: None) -> list[dict[str, float]]:
    """Run the job to its end, from its last checkpoint if it has one; rank 0 reports.

    Returns:
        The training curve, one row of metrics per step, those before a resumption included.
    """
    work = partial(_train, job, free_port())
    return run_ranks(work, job.params.processes, lambda rank, report: on_step(*report))[0]


def _train(job: TrainingJob, port: int, rank: int, size: int, report: Report) -> list[dict[str, float]]:
    from skillpress.experiment.training_job import train_rank

    return train_rank(job, port, rank, size, report)
