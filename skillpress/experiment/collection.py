"""Playing episodes as a job for ranks: described and started.

What a rank does stands in ``collection_job.py``, which is imported in the ranks: the process that only waits
for them starts without torch.
Which rank plays an episode is decided by the episode's place among those requested, so the same
``processes`` gives the same bytes on any machine. Ranks write what they play to disk, and the file of all
episodes is made from there: no process ever holds them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from skillpress.core.resume import ResumeStore
from skillpress.experiment.params import Params
from skillpress.play.rollout.collector import CollectionStatistics
from skillpress.play.rollout.ordered import write_in_order
from skillpress.play.rollout.requests import EpisodeRequest
from skillpress.play.workers.ranks import Report, run_ranks


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
    job: CollectionJob, output: Path, on_finished: Callable[[int], None]
) -> CollectionStatistics:
    """Play what is missing, and write the rollouts of all plays, each in the order requested.

    Args:
        output: the file.
        on_finished: told how many more episodes are there: once per rank those of an interrupted
            process, then each as it ends.

    Returns:
        What was done for them now, summed over the ranks.
    """
    # An engine that all share holds one policy's weights, so one process asks it for everything.
    size = 1 if job.params.engine.shared else job.params.processes
    found = run_ranks(partial(_play, job), size, lambda rank, count: on_finished(count))
    stores = [job.store.of_rank(rank) for rank in range(size)]
    episodes = sum(len(play.wanted) for play in job.plays)
    write_in_order(output, stores, episodes, scratch=job.store.folder / "slices")
    return sum(found, CollectionStatistics())


def share_of(
    wanted: Iterable[EpisodeRequest], first: int, rank: int, size: int
) -> Iterator[tuple[int, EpisodeRequest]]:
    """The episodes that a rank plays, with their numbers.

    Groups are dealt out in turn and stay whole, since their prompts begin alike and are then computed once.

    Args:
        wanted: a group's episodes one after the other.
        first: the number of the first of them.
    """
    groups, last = -1, None
    for number, request in enumerate(wanted, first):
        group = request.group_id, request.task.task_id
        groups += group != last
        last = group
        if groups % size == rank:
            yield number, request


def _play(job: CollectionJob, rank: int, size: int, report: Report) -> CollectionStatistics:
    from skillpress.experiment.collection_job import play_rank

    return play_rank(job, rank, size, report)
