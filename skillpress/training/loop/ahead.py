"""Plays the rollouts of each training step: when the step needs them, or up to ``training.lag`` steps before.

Weights n are those after the updates of step n; weights 0 are the start policy's. Without a lag, weights n -
1 play batch n, and engine and learner wait for each other. With lag k, batch n + k is begun when the learner
begins the updates of step n, by weights n - 1:

                step n                              step n + 1
    learner     updates by batch n: weights n       updates by batch n + 1: weights n + 1
    engine      plays batch n + k by weights n - 1  plays batch n + 1 + k by weights n

So a batch is at most k steps old. There are two ways:

- Here, in lock-step, each batch comes from one policy: the engine takes new weights between two batches. With
  lag 1 this happens when learner and engine have both finished. With a larger lag the engine may be up to k -
  1 batches behind, and copies of up to k - 1 weights wait for it. What is played does not depend on which of
  the two was faster, so the same seed gives the same weights, bit for bit.
- With an engine whose responses continue under new weights (servers), ``continuing.py`` plays several batches
  at once, and nothing waits for the slowest episode.

Rollouts do not cross a checkpoint: the last steps before one begin no later batch, so no checkpoint has to
store unfinished episodes. The step after a checkpoint is therefore on-policy, in a resumed run as in any
other; so is the first step. Batch n is thus played by weights max(n - 1 - k, c), where c is the last step
before n that a checkpoint follows.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol, Self

from skillpress.core.engine import Engine, StateDict
from skillpress.rollouts.collection import CollectionStatistics
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.groups import GroupCollector

STOP_SECONDS = 5.0
"""After an error, playing ahead has this long to stop before the process ends."""


class RolloutSource(Protocol):
    """Plays the groups of training steps; all its methods are called from one thread.

    A context manager that stops unfinished play at its end.
    """

    collect: GroupCollector

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    @property
    def statistics(self) -> CollectionStatistics:
        """Statistics of all play so far; they grow while episodes are played ahead."""

    @property
    def begun(self) -> int:
        """The last step whose rollouts were begun, or taken."""

    def __call__(self, step: int) -> tuple[Batch, dict[str, float]]:
        """The rollouts of training step ``step`` (from 1), played ahead or else now, and metrics of this
        process's play."""

    def begin(self, step: int) -> None:
        """Start playing the rollouts of ``step``, the first that is not begun, with the weights before the
        updates that run now."""

    def finish(self) -> None:
        """Wait for what must be played before new weights are handed over.

        Raises:
            Exception: the error that stopped playing ahead, with its traceback.
        """

    def rest(self) -> None:
        """Wait until nothing is being played and the engine has the newest weights. What was played ahead is
        kept."""

    def update_weights(self, weights: StateDict, version: int) -> None:
        """Play with these weights, those after training step ``version``, for everything that is begun from
        now on. The tensors may change afterwards."""


class Rollouts:
    """A ``RolloutSource`` in lock-step.

    One thread of this process plays ahead, batch after batch, and it lives as long as this object. Torch
    releases the interpreter lock while it computes, so both threads make progress.
    """

    def __init__(self, collect: GroupCollector, engine: Engine | None = None) -> None:
        """``engine``: what the collector's agent samples from; None if it has no weights."""
        self.collect, self._engine = collect, engine
        self._thread = ThreadPoolExecutor(1, "plays ahead")  # the thread starts with the first task
        self._ahead: dict[int, Future[tuple[Batch, dict[str, float]]]] = {}
        """Batches that were begun and that no step has taken, in order."""
        self._waiting: dict[int, StateDict] = {}
        """Version to a copy of weights that the engine may load between two batches."""
        self._step = 0
        """The step whose rollouts were taken last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._ahead:
            self.collect.collector.stop()
            # No thread is left that would report a cancelled batch, so ``wait`` would use up its time on it.
            wait([batch for batch in self._ahead.values() if not batch.cancelled()], STOP_SECONDS)

    @property
    def statistics(self) -> CollectionStatistics:
        """See ``RolloutSource``."""
        return self.collect.collector.statistics

    @property
    def begun(self) -> int:
        """See ``RolloutSource``."""
        return max(self._ahead, default=self._step)

    def __call__(self, step: int) -> tuple[Batch, dict[str, float]]:
        """See ``RolloutSource``."""
        ahead, self._step = self._ahead.pop(step, None), step
        return self.collect(step, step - 1) if ahead is None else ahead.result()

    def begin(self, step: int) -> None:
        """See ``RolloutSource``."""
        # The step taken last has not been learned from yet: the engine has the weights of the step before it.
        version = (self._step or step - 1) - 1
        self._ahead[step] = self._thread.submit(self._play, step, version)

    def finish(self) -> None:
        """Wait for the next step's rollouts, which the step needs anyway; then new weights need a copy
        only if a later batch is still being played. See ``RolloutSource``."""
        if self._ahead:
            self._ahead[min(self._ahead)].result()

    def rest(self) -> None:
        """See ``RolloutSource``."""
        for batch in self._ahead.values():
            batch.result()
        if self._waiting:
            version = max(self._waiting)
            self._take(self._waiting[version], version)

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``RolloutSource``."""
        # Between two batches the engine reads the learner's own tensors, so no copy is made.
        if all(batch.done() for batch in self._ahead.values()):
            self._take(weights, version)
        else:  # the learner changes its tensors in place
            self._waiting[version] = {
                name: each.detach().to("cpu", copy=True) for name, each in weights.items()
            }

    def _take(self, weights: StateDict, version: int) -> None:
        """Give an idle engine the newest weights, since no batch that was begun waits for older ones."""
        self._waiting.clear()
        if self._engine is not None:
            self._engine.update_weights(weights, version)

    def _play(self, step: int, version: int) -> tuple[Batch, dict[str, float]]:
        """Play a batch; runs in the thread. Batches of one version follow each other."""
        # None if the engine has these weights already, from an earlier batch of the same version.
        weights = self._waiting.pop(version, None)
        if weights is not None and self._engine is not None:
            self._engine.update_weights(weights, version)
        return self.collect(step, version)
