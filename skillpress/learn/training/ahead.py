"""Plays the rollouts of each training step: when the step needs them, or during the updates before it.

Weights n are those after the updates of step n; weights 0 are the start policy's. Without a lag, weights n -
1 play batch n, and engine and learner wait for each other. With ``training.lag`` 1 both work at once:

                step n                              step n + 1
    learner     updates by batch n: weights n       updates by batch n + 1: weights n + 1
    engine      plays batch n + 1 by weights n - 1  plays batch n + 2 by weights n

A batch that was played ahead is one step old. The engine takes new weights when both have finished, so every
batch comes from one policy and does not depend on which was faster. Nothing is played ahead during a step
that a checkpoint follows, so no checkpoint has to store unfinished episodes. The step after a checkpoint is
therefore on-policy, in a resumed run as in any other; so is the first step.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self

from skillpress.learn.training.groups import Collected, GroupCollector
from skillpress.play.rollout import CollectionStatistics

STOP_SECONDS = 5.0
"""After an error, playing ahead has this long to stop before the process ends."""


class Rollouts:
    """Plays the groups of training steps; a context manager that stops unfinished play at its end.

    One thread of this process plays ahead, and it lives as long as this object. Torch releases the
    interpreter lock while it computes, so both threads make progress.
    """

    def __init__(self, collect: GroupCollector) -> None:
        self.collect = collect
        self._thread = ThreadPoolExecutor(1, "plays ahead")  # the thread starts with the first task
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
        """Statistics of all play so far; they grow while episodes are played ahead."""
        return self.collect.collector.statistics

    def __call__(self, step: int) -> Collected:
        """The rollouts of training step ``step`` (from 1): those played ahead, or else played now."""
        ahead, self._ahead = self._ahead, None
        return self.collect(step, step - 1) if ahead is None else ahead.result()

    def begin(self, step: int) -> None:
        """Start playing the rollouts of ``step``, with the weights before the updates that run now."""
        self._ahead = self._thread.submit(self.collect, step, step - 2)

    def finish(self) -> None:
        """Wait until the rollouts that were begun have been played; returns at once if there are none.

        Raises:
            Exception: the error that stopped playing ahead, with its traceback.
        """
        if self._ahead is not None:
            self._ahead.result()
