"""The finished episodes of a collection that is not finished, so that none is played twice.

Finished episodes are written every few seconds. A collection that is started again reads them and
plays the others; its result is the same, because no trajectory depends on what is played beside it.
But for rounding: the model computes other batches then, the last digit of a log-probability may
differ, and once in some 100,000 steps of a policy that hardly prefers anything a draw falls on the
other side of a boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from skillpress.resume import ResumeStore, SaveTimer
from skillpress.rollout.collector import Collector, EpisodeRequest
from skillpress.trajectory import Trajectory, read_rollouts, write_rollouts

KIND = "episodes"


class EpisodeLog:
    """The finished episodes of one unfinished collection; a context manager, which saves what is new."""

    def __init__(self, store: ResumeStore, timer: SaveTimer | None = None) -> None:
        """
        Args:
            timer: when to save; None is :class:`SaveTimer`'s own interval.

        Raises:
            StorageError: a part is damaged; the message names it.
        """
        parts = store.parts(KIND)
        self._store, self._timer = store, timer or SaveTimer()
        self._number = parts[-1][0] + 1 if parts else 0
        self._finished = {_place(t): t for _, path in parts for t in read_rollouts(path)}
        self._unsaved: list[Trajectory] = []

    def __enter__(self) -> EpisodeLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.save()

    def missing(self, wanted: Sequence[EpisodeRequest]) -> list[EpisodeRequest]:
        """The episodes that are still to be played."""
        return [request for request in wanted if _place(request) not in self._finished]

    def add(self, trajectory: Trajectory) -> None:
        """Take a finished episode in."""
        self._finished[_place(trajectory)] = trajectory
        self._unsaved.append(trajectory)
        if self._timer():
            self.save()

    def save(self) -> None:
        """Write what is new."""
        if self._unsaved:
            write_rollouts(self._store.part(KIND, self._number), self._unsaved)
            self._number += 1
            self._unsaved.clear()

    def play(
        self,
        collector: Collector,
        wanted: Sequence[EpisodeRequest],
        policy_version: int = 0,
        on_episode: Callable[[], None] = lambda: None,
    ) -> None:
        """Play those of the requested episodes that are missing."""

        def finished(number: int, trajectory: Trajectory) -> None:
            self.add(trajectory)
            on_episode()

        collector.play(self.missing(wanted), finished, policy_version)

    def trajectories(self, wanted: Sequence[EpisodeRequest]) -> list[Trajectory]:
        """The requested episodes, in that order; all have been played."""
        return [self._finished[_place(request)] for request in wanted]


def _place(episode: EpisodeRequest | Trajectory) -> tuple[str, str, int]:
    task_id = episode.task.task_id if isinstance(episode, EpisodeRequest) else episode.task_id
    return episode.group_id, task_id, episode.rollout_index
