"""The finished episodes of a collection, kept on disk so that no episode is played twice or held in memory.

Finished episodes are written in parts, every few seconds or whenever there are many. A collection that is
restarted finds the finished episodes and plays the others. Its result is the same, because no trajectory
depends on the episodes played at the same time. Rounding is the one exception: the model computes different
batches after a restart, so the last digit of a log-probability may differ, and about once in millions of
draws another token is drawn.

An episode is identified by its number among those wanted. The store's key covers everything that determines
which episodes these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType

import polars as pl

from skillpress.core.resume import ResumeStore, SaveTimer
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, rollout_frame
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Trajectory
from skillpress.rollouts.collection.collector import Collector
from skillpress.rollouts.collection.requests import EpisodeRequest

KIND = "episodes"
NUMBERED_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {"number": pl.Int64, **ROLLOUT_SCHEMA}
"""Schema of a part: the rows of its trajectories, each with the trajectory's number."""
UNSAVED_VALUES = 1_000_000
"""A part is written when this many values (tokens and others) are waiting in memory."""
STEP_VALUES = 100
"""Number of values that a step counts for in addition to its tokens."""


class EpisodeLog:
    """The finished episodes of one process in an unfinished collection. A context manager: on an error it
    saves the episodes that are not on disk yet."""

    def __init__(self, store: ResumeStore, timer: SaveTimer | None = None) -> None:
        """Args:
            timer: decides when to save; None uses :class:`SaveTimer`'s own interval.

        Raises:
            StorageError: a part is damaged; the message names it.
        """
        parts = store.parts(KIND)
        self._store, self._timer = store, timer or SaveTimer()
        self._part = parts[-1][0] + 1 if parts else 0
        self._finished = bytearray()
        """One byte per number; 1 if that episode is finished."""
        for _, path in parts:
            numbers = scan_table(path, KIND, NUMBERED_SCHEMA).select(pl.col("number").unique())
            for number in numbers.collect()["number"]:
                self._mark(number)
        self._unsaved: list[tuple[int, Trajectory]] = []
        self._values = 0

    def __enter__(self) -> EpisodeLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.save()

    def __contains__(self, number: int) -> bool:
        """Whether this episode is finished."""
        return number < len(self._finished) and bool(self._finished[number])

    def add(self, number: int, trajectory: Trajectory) -> None:
        """Add a finished episode."""
        self._mark(number)
        self._unsaved.append((number, trajectory))
        self._values += sum(
            len(step.prompt_ids) + len(step.response_ids) + STEP_VALUES for step in trajectory.decisions
        )
        if self._timer() or self._values >= UNSAVED_VALUES:
            self.save()

    def save(self) -> None:
        """Write the episodes that are not on disk yet."""
        if self._unsaved:
            frame = rollout_frame(trajectory for _, trajectory in self._unsaved)
            numbers = [number for number, trajectory in self._unsaved for _ in trajectory.decisions]
            frame.insert_column(0, pl.Series("number", numbers, pl.Int64))
            write_table(self._store.part(KIND, self._part), frame, KIND)
            self._part += 1
            self._unsaved.clear()
            self._values = 0

    def play(
        self,
        collector: Collector,
        wanted: Iterable[tuple[int, EpisodeRequest]],
        policy_version: int = 0,
        on_episode: Callable[[], None] = lambda: None,
    ) -> None:
        """Play those of the numbered episodes that are not finished."""

        def finished(number: int, trajectory: Trajectory) -> None:
            self.add(number, trajectory)
            on_episode()

        missing = ((number, request) for number, request in wanted if number not in self)
        collector.play(missing, finished, policy_version)

    def _mark(self, number: int) -> None:
        self._finished.extend(bytes(max(0, number + 1 - len(self._finished))))
        self._finished[number] = 1
