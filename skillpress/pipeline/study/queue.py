"""Which run is next: the earliest of the plan that need not wait for another.

Runs of one benchmark and seed share their tasks and their imitation start. The first of them goes ahead;
the others wait for it, and then find in DVC's cache what they share. Meanwhile the first run of another
benchmark or seed is taken, so that no core is idle.
"""

from __future__ import annotations

from collections.abc import Iterable

from skillpress.pipeline.study.runs import PlannedRun


class Queue:
    """The missing runs, in the order of the plan."""

    def __init__(self, runs: Iterable[PlannedRun]) -> None:
        self.waiting = list(runs)
        self._led: set[tuple[str, int]] = set()
        self._shared: set[tuple[str, int]] = set()

    def next(self) -> PlannedRun | None:
        """Take the next run; None while all that are left wait for one that is not done."""
        for place, run in enumerate(self.waiting):
            if _start(run) in self._shared or _start(run) not in self._led:
                self._led.add(_start(run))
                return self.waiting.pop(place)
        return None

    def done(self, run: PlannedRun) -> None:
        """The run has ended, well or not: who waited for it may go."""
        self._shared.add(_start(run))


def _start(run: PlannedRun) -> tuple[str, int]:
    return run.benchmark, run.seed
