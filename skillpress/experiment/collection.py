"""Plays the episodes of a job and writes them, for stages, evaluations and notebooks.

``collection_job.py`` has the work of one rank and is imported only there, so the process that waits for the
ranks starts without torch. An episode's place in the request decides which rank plays it, so the same
``processes`` gives the same bytes on any machine. Ranks write their episodes to disk, and the file of all
episodes is made from these: no process ever holds all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from skillpress.core.long_work import importing, long_work
from skillpress.core.resume import SECONDS_BETWEEN_SAVES, ResumeStore, SaveTimer
from skillpress.core.trajectory import Task
from skillpress.experiment.params import Params
from skillpress.rollouts.collection import (
    CollectionStatistics,
    Collector,
    EpisodeLog,
    Requests,
    requests,
)
from skillpress.rollouts.collection.ordered import write_in_order
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.rollouts.workers.ranks import Report, run_ranks


@dataclass(frozen=True)
class Play:
    """Episodes to play with one policy."""

    policy: Path | None
    """A model folder or name; None means the random explorer."""
    wanted: Sequence[EpisodeRequest]
    version: int = 0
    """Version of the policy, recorded with each trajectory."""


def play_of(params: Params, tasks: Sequence[Task], policy: str, model: Path | None, version: int = 0) -> Play:
    """The episodes of an evaluation: each of its ``runs`` runs plays every task ``votes`` times.

    Args:
        policy: its name in the rollouts.
        model: its folder; None means the random explorer.
        version: the training step whose weights play.
    """
    section = params.evaluation
    runs = (
        requests(tasks, section.votes, params.seed, policy, f"run-{run}", policy=policy, run=run)
        for run in range(section.runs)
    )
    return Play(policy=model, wanted=sum(runs, start=Requests(())), version=version)


@dataclass(frozen=True)
class CollectionJob:
    """Episodes to play, one policy after the other."""

    params: Params
    sampling: Literal["training", "evaluation"]
    """Sampling settings (temperature, top_p, top_k) to use."""
    plays: Sequence[Play]
    store: ResumeStore
    """Store of finished episodes."""
    seconds_between_saves: float = SECONDS_BETWEEN_SAVES
    """Seconds between two saves; 0 saves each episode as it ends."""


Begin = Callable[[Play], AbstractContextManager[Collector]]
"""Opens the collector of a play."""


def play_episodes(
    job: CollectionJob, output: Path, on_finished: Callable[[int], None], begin: Begin | None = None
) -> CollectionStatistics:
    """Play missing episodes, and write the rollouts of all plays, each in the requested order.

    Args:
        on_finished: receives the number of additional finished episodes: once per rank for those of an
            interrupted process, then for each episode at its end.
        begin: opens collectors in this process; None loads the policies in the job's ranks.

    Returns:
        Statistics of the play in this call, summed over the ranks.
    """
    # A shared engine holds one policy's weights, so one process sends all requests.
    size = 1 if begin or job.params.engine.shared else job.params.processes
    work = partial(play_share, job, begin) if begin else partial(_play, job)
    found = run_ranks(work, size, lambda rank, count: on_finished(count))
    stores = [job.store.of_rank(rank) for rank in range(size)]
    episodes = sum(len(play.wanted) for play in job.plays)
    write_in_order(output, stores, episodes, scratch=job.store.folder / "slices")
    return sum(found, CollectionStatistics())


def play_share(
    job: CollectionJob, begin: Begin, rank: int, size: int, report: Report
) -> CollectionStatistics:
    """Play as one of ``size`` ranks; reports the number of additional finished episodes."""
    total, first = CollectionStatistics(), 0
    with EpisodeLog(job.store.of_rank(rank), SaveTimer(job.seconds_between_saves)) as log:
        for play in job.plays:
            mine = partial(share_of, play.wanted, first, rank, size)
            first += len(play.wanted)
            there = Counter(number in log for number, _ in mine())
            report(there[True])
            if not there[False]:
                continue
            with begin(play) as collector:
                log.play(collector, mine(), play.version, lambda: report(1))
            total += collector.statistics
        log.save()
    return total


def share_of(
    wanted: Iterable[EpisodeRequest], first: int, rank: int, size: int
) -> Iterator[tuple[int, EpisodeRequest]]:
    """The episodes that a rank plays, with their numbers.

    Ranks take groups in turn. Groups stay whole, because their prompts begin alike and that part is then
    computed once.

    Args:
        wanted: requests, with the episodes of each group in sequence.
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
    with importing("torch and transformers"):
        from skillpress.experiment.collection_job import play_rank

    with long_work():
        return play_rank(job, rank, size, report)
