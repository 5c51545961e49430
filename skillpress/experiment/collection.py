"""Playing episodes as a job for ranks: described and started.

What a rank does stands in ``collection_job.py``, which is imported in the ranks: the process that only waits
for them starts without torch.
Which rank plays an episode is decided by the episode's place among those requested, so the same
``processes`` gives the same bytes on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from skillpress.params import Params
from skillpress.resume import ResumeStore
from skillpress.rollout.collector import CollectionStatistics, EpisodeRequest
from skillpress.rollout.episode_log import EpisodeLog
from skillpress.trajectory import Trajectory
from skillpress.workers.ranks import Report, run_ranks


@dataclass(frozen=True)
class Play:
    """Episodes of one policy."""

    policy: Path | None
    """A model folder or name; None is the random explorer."""
    wanted: Sequence[EpisodeRequest]
    version: int = 0
    """Recorded with each trajectory."""


@dataclass(frozen=True)
class CollectionJob:
    """Episodes to play, one policy after the other."""

    params: Params
    sampling: Literal["training", "evaluation"]
    """Whose temperature and cuts are used."""
    plays: Sequence[Play]
    store: ResumeStore
    """Where finished episodes are kept."""


def play_episodes(
    job: CollectionJob, on_finished: Callable[[int], None]
) -> tuple[list[list[Trajectory]], CollectionStatistics]:
    """Play what is missing.

    Args:
        on_finished: told how many more episodes are there: once per rank those of an interrupted
            process, then each as it ends.

    Returns:
        The trajectories of each play, in the order requested, and what was done for them now.
    """
    size = job.params.processes
    found = run_ranks(partial(_play, job), size, lambda rank, count: on_finished(count))
    done = CollectionStatistics(
        sum(s.episodes for s in found),
        sum(s.environment_steps for s in found),
        sum(s.decisions for s in found),
    )
    logs = [EpisodeLog(job.store.of_rank(rank)) for rank in range(size)]
    return [gathered(play.wanted, logs) for play in job.plays], done


def gathered(wanted: Sequence[EpisodeRequest], logs: Sequence[EpisodeLog]) -> list[Trajectory]:
    """The requested episodes in their order, each from the log of the rank that played it."""
    owners = owners_of(wanted, len(logs))
    parts = [
        iter(log.trajectories([r for r, owner in zip(wanted, owners, strict=True) if owner == rank]))
        for rank, log in enumerate(logs)
    ]
    return [next(parts[owner]) for owner in owners]


def owners_of(wanted: Sequence[EpisodeRequest], size: int) -> list[int]:
    """The rank that plays each episode: groups are dealt out in turn and stay whole, since their
    prompts begin alike and are then computed once."""
    groups = list(dict.fromkeys((request.group_id, request.task.task_id) for request in wanted))
    owner = {group: index % size for index, group in enumerate(groups)}
    return [owner[request.group_id, request.task.task_id] for request in wanted]


def _play(job: CollectionJob, rank: int, size: int, report: Report) -> CollectionStatistics:
    from skillpress.experiment.collection_job import play_rank

    return play_rank(job, rank, size, report)
