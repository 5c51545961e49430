"""A whole training run as a job for ranks: from a start policy and tasks to a trained policy.

``training_job.py`` has the work of one rank and is imported only there, so the process that waits for the
ranks starts without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from skillpress.core.long_work import importing, long_work
from skillpress.experiment.params import Params
from skillpress.rollouts.workers.launched import launch_of_environment, take_part
from skillpress.rollouts.workers.ranks import Report, free_port, run_ranks
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes
from skillpress.training.loop.keeping.checkpoint import Checkpoints


@dataclass(frozen=True)
class TrainingJob:
    """The inputs of a training run and the places of its outputs."""

    params: Params
    tasks: Path
    """The training tasks."""
    validation: Path
    """The tasks that decide the best step; played only if ``training.keep`` is ``best``."""
    unseen: Path
    """The tasks that training never meets, for ``training.probe``; no file if there are none."""
    start: Path
    """The model folder to start from."""
    output: Path
    """The trained model's folder."""
    history: Path
    """The file for the dictionaries of all steps."""
    library: Path
    """The file for the skill library with its history; empty if the experiment has no library."""
    episodes: TrainedEpisodes
    """The files for a sample of the episodes that training learned from."""
    probes: Path
    """The file for the rows of ``training.probe``."""
    checkpoints: Checkpoints
    """Where an interrupted run resumes; their key covers everything that decides the result."""
    beginning: Path | None = None
    """The file of the successes and phrases that training begins with (``skills/start.py``); None begins
    without any, whatever ``skills.start`` says."""


def job_in(
    folder: Path,
    params: Params,
    prepared: Path,
    *,
    key: str = "training",
    validation: str = "train.parquet",
    episodes: type[TrainedEpisodes] = TrainedEpisodes,
) -> TrainingJob:
    """The training of the policy ``start``, which writes ``policy`` and all its files into one folder.

    Args:
        prepared: the folder with ``start`` and the tasks.
        key: the key of the checkpoints: a training only resumes from checkpoints with its own key.
        validation: the file of validation tasks; the training tasks replace it if none are played.
        episodes: the kind of files for a sample of episodes.
    """
    return TrainingJob(
        params=params,
        tasks=prepared / "train.parquet",
        validation=prepared / validation,
        unseen=prepared / "unseen.parquet",
        start=prepared / "start",
        output=folder / "policy",
        history=folder / "dictionaries.json",
        library=folder / "library.json",
        probes=folder / "probes.parquet",
        episodes=episodes(folder / "training.parquet", folder / "advantages.parquet"),
        checkpoints=Checkpoints(folder / "checkpoints", key),
    )


OnStep = Callable[[int, dict[str, float]], None]
"""Receives (step, metrics) after every step that this call trains, and of step 0 if it is probed."""


def train(job: TrainingJob, on_step: OnStep = lambda step, metrics: None) -> list[dict[str, float]]:
    """Run the job to its end, from its last checkpoint if it has one; rank 0 reports.

    If a launcher started this process, the process is one of the ranks, and the launcher starts the others.
    Otherwise this function starts the ranks.

    Returns:
        The training curve: one row of metrics per step, including steps before a resumption.

    Raises:
        LaunchError: the launcher started another number of ranks than ``processes``.
        RankError: a rank was lost.
    """
    processes, silence = job.params.processes, job.params.training.timeout
    launch = launch_of_environment()
    if launch is not None:
        part = partial(_train, job, None)
        return take_part(part, launch, processes, lambda report: on_step(*report))
    work = partial(_train, job, free_port())
    return run_ranks(work, processes, lambda rank, report: on_step(*report), silence)[0]


def _train(
    job: TrainingJob, port: int | None, rank: int, size: int, report: Report
) -> list[dict[str, float]]:
    """Without a port, a launcher says where the ranks meet and which of them are this machine's."""
    with importing("torch, transformers and DeepSpeed"):
        from skillpress.experiment.training_job import train_rank
    from skillpress.rollouts.workers.distributed import Ranks

    launch, ranks = launch_of_environment(), Ranks(rank, size)
    if port is None:
        assert launch is not None
        ranks = replace(ranks, local_rank=launch.local_rank, local_size=launch.local_size)
    with long_work():
        return train_rank(job, ranks, port, report)
