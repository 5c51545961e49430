"""The finished episodes of a collection, on disk: none is played twice, and none stays in memory.

Finished episodes are written in parts, every few seconds or when there are many. A collection that is
started again looks which ones are there and plays the others; its result is the same, because no
trajectory depends on what is played beside it. But for rounding: the model computes other batches then,
the last digit of a log-probability may differ, and once in some millions of draws another token is drawn.

An episode goes by its number among those wanted. The store's key covers all that decides which those are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType

import polars as pl

from skillpress.core.resume import ResumeStore, SaveTimer
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, rollout_frame
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Trajectory
from skillpress.play.rollout.collector import Collector
from skillpress.play.rollout.requests import EpisodeRequest

KIND = "episodes"
NUMBERED_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {"number": pl.Int64, **ROLLOUT_SCHEMA}
"""A part: the rows of its trajectories, each with the trajectory's number."""
UNSAVED_VALUES = 1_000_000
"""So many tokens and the like may wait in memory for the next part."""
STEP_VALUES = 100
"""What a step counts for beside its tokens."""


class EpisodeLog:
    """One process's finished episodes of an unfinished collection; a context manager, which saves what is
    new."""

    def __init__(self, store: ResumeStore, timer: SaveTimer | None = None) -> None:
        """
        Args:
            timer: when to save; None is :class:`SaveTimer`'s own interval.

        Raises:
            StorageError: a part is damaged; the message names it.
        """
        parts = store.parts(KIND)
        self._store, self._timer = store, timer or SaveTimer()
        self._part = parts[-1][0] + 1 if parts else 0
        self._finished = bytearray()
        """A byte for each number, 1 where the episode is finished."""
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
        """Take a finished episode in."""
        self._mark(number)
        self._unsaved.append((number, trajectory))
        self._values += sum(
            len(step.prompt_ids) + len(step.response_ids) + STEP_VALUES for step in trajectory.decisions
        )
        if self._timer() or self._values >= UNSAVED_VALUES:
            self.save()

    def save(self) -> None:
        """Write what is new."""
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
        """Play those of the numbered episodes that are missing."""

        def finished(number: int, trajectory: Trajectory) -> None:
            self.add(number, trajectory)
            on_episode()

        missing = ((number, request) for number, request in wanted if number not in self)
        collector.play(missing, finished, policy_version)

    def _mark(self, number: int) -> None:
        self._finished.extend(bytes(max(0, number + 1 - len(self._finished))))
        self._finished[number] = 1
