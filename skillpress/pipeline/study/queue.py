"""Which run is next: the earliest in the plan that need not wait for another.

Runs of one benchmark and seed share their tasks and their imitation start. The first of them starts alone;
the others wait for it, and then find the shared results in DVC's cache. Meanwhile the first run of another
benchmark or seed starts, so that no core is idle.
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
        """Take the next run; None while all remaining runs wait for one that is not done."""
        for place, run in enumerate(self.waiting):
            if _start(run) in self._shared or _start(run) not in self._led:
                self._led.add(_start(run))
                return self.waiting.pop(place)
        return None

    def done(self, run: PlannedRun) -> None:
        """Record that the run has ended, successfully or not; runs that waited for it may start."""
        self._shared.add(_start(run))


def _start(run: PlannedRun) -> tuple[str, int]:
    return run.benchmark, run.seed
