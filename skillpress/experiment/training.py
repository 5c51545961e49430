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
from skillpress.workers.launched import Launch, launch_of_environment, take_part
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

    Where a launcher started this process it is one of the ranks, and the others' launcher starts them;
    otherwise the ranks are started here.

    Returns:
        The training curve, one row of metrics per step, those before a resumption included.

    Raises:
        LaunchError: the launcher started another number of ranks than ``processes``.
        RankError: a rank was lost.
    """
    processes, silence = job.params.processes, job.params.training.timeout
    launch = launch_of_environment()
    if launch is not None:
        part = partial(_train_launched, job, launch)
        return take_part(part, launch, processes, lambda report: on_step(*report))
    work = partial(_train, job, free_port())
    return run_ranks(work, processes, lambda rank, report: on_step(*report), silence)[0]


def _train(job: TrainingJob, port: int, rank: int, size: int, report: Report) -> list[dict[str, float]]:
    from skillpress.experiment.training_job import train_rank
    from skillpress.workers.distributed import Ranks

    return train_rank(job, Ranks(rank, size), port, report)


def _train_launched(
    job: TrainingJob, launch: Launch, rank: int, size: int, report: Report
) -> list[dict[str, float]]:
    from skillpress.experiment.training_job import train_rank
    from skillpress.workers.distributed import Ranks

    ranks = Ranks(rank, size, local_rank=launch.local_rank, local_size=launch.local_size)
    return train_rank(job, ranks, None, report)
