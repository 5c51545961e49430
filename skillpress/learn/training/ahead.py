"""The rollouts of each training step: played when it needs them, or ahead, beside the updates before it.

Weights n are those after the updates of step n, and weights 0 the start's. Without a lag batch n is played by
weights n - 1, and engine and learner wait for each other. With ``training.lag`` 1 both work at once:

                step n                              step n + 1
    learner     updates by batch n: weights n       updates by batch n + 1: weights n + 1
    engine      plays batch n + 1 by weights n - 1  plays batch n + 2 by weights n

A batch that was played ahead is one step old. The engine takes new weights when both have finished: every
batch is of one policy, and the same whichever was faster. Nothing is played ahead beside the step that a
checkpoint follows, so that no checkpoint has to hold what is in flight, and the step after it is on-policy,
in a resumed run as in any other; so is the first.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self

from skillpress.learn.training.groups import Collected, GroupCollector
from skillpress.play.rollout import CollectionStatistics

STOP_SECONDS = 5.0
"""How long an error waits for what is being played ahead to stop. The process itself ends after it."""


class Rollouts:
    """Plays the groups of training steps; a context manager, which stops what is still being played.

    What is played ahead is played in one thread of this process, which lives as long as this object: torch
    leaves the interpreter to the other thread while it computes.
    """

    def __init__(self, collect: GroupCollector) -> None:
        self.collect = collect
        self._thread = ThreadPoolExecutor(1, "plays ahead")  # without a thread until something is begun
        self._ahead: Future[Collected] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=False)
        if self._ahead is not None:
            self.collect.collector.stop()
            wait([self._ahead], STOP_SECONDS)

    @property
    def statistics(self) -> CollectionStatistics:
        """What was done so far for all that was played; still growing while something is played ahead."""
        return self.collect.collector.statistics

    def __call__(self, step: int) -> Collected:
        """Those of training step ``step`` (from 1): what was begun, or else played now."""
        ahead, self._ahead = self._ahead, None
        return self.collect(step, step - 1) if ahead is None else ahead.result()

    def begin(self, step: int) -> None:
        """Play those of ``step`` ahead: beside the updates of the step before, by the weights before them."""
        self._ahead = self._thread.submit(self.collect, step, step - 2)

    def finish(self) -> None:
        """Return when what was begun has been played; at once where nothing was.

        Raises:
            Exception: what went wrong in playing it, with its traceback.
        """
        if self._ahead is not None:
            self._ahead.result()
