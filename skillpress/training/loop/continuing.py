"""Plays the groups of several training steps at once, while weights change, with a bound on their age.

It needs an engine whose open requests continue under new weights (``Promises.continues``). The episodes of
all groups share the slots, and new weights reach the engine while they are played: an episode, even one
response, may have tokens of several weights, and each span of tokens names its own. With ``training.lag`` k:

    begin   The groups of step n + k are begun when the learner begins the updates of step n, so at most k
            batches are in the air.
    take    Step n learns from as many groups as it needs, those with the oldest weights first, whichever
            step they were begun for. The learner waits only while too few have finished; it does not wait
            for the slowest episode.
    drop    A group is dropped when a token of it could be more than k steps older than the learner's
            weights. It is begun again at once, before all others. So that slow tasks are not dropped over
            and over, the learner waits for such a group before it would be dropped again.

The age of a group counts from the weights with which its first episode began. With k = 1 each step takes all
groups that are in the air, so none can be dropped. Episodes of a dropped group that are being played are
played to their end, and forgotten.

Between two checkpoints the groups are those of their steps, each once, in an order that depends on time; the
last step before a checkpoint takes all that are left. So a resumed run continues with the same tasks. What is
sampled is not repeatable, as always with such engines.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Condition
from typing import Self

from skillpress.core.answers import WAIT_SECONDS
from skillpress.core.engine import Engine, StateDict
from skillpress.core.trajectory import Trajectory
from skillpress.rollouts.collection import CollectionStatistics, EpisodeRequest
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.ahead import STOP_SECONDS
from skillpress.training.loop.groups import Group, GroupCollector, speed

TOO_OLD = "groups_too_old"
"""The metric that counts the groups dropped since the last step because their weights were too old."""


# Groups are equal only if they are the same object: lists must not compare trajectories to find one.
@dataclass(eq=False)
class _GroupInAir:
    """A group that was begun and that no step has taken."""

    place: int
    """Its number in the order in which groups were begun for the first time."""
    group: Group
    asked: list[EpisodeRequest]
    """Requests for its episodes, then for their further attempts."""
    again: bool = False
    """Whether it was dropped and begun again."""
    oldest: int | None = None
    """Version of the weights when its first episode began; None while none has."""
    played: dict[int, Trajectory] = field(default_factory=dict)
    """Index in ``asked`` to what was played."""
    tried: bool = False
    """Whether its episodes have been asked for further attempts."""

    @property
    def finished(self) -> bool:
        return self.tried and len(self.played) == len(self.asked)

    def age(self, step: int) -> int:
        """Steps by which its oldest weights are behind those with which training step ``step`` begins."""
        return 0 if self.oldest is None else step - 1 - self.oldest


class ContinuingRollouts:
    """A ``RolloutSource`` for engines whose responses continue under new weights.

    One thread plays; the others' calls only change what there is to play, under one lock.
    """

    def __init__(self, collect: GroupCollector, engine: Engine, lag: int) -> None:
        """``lag``: the largest age of a token that is learned from, in training steps; at least 1."""
        self.collect, self._engine, self._lag = collect, engine, lag
        self._thread = ThreadPoolExecutor(1, "plays ahead")
        self._playing: Future[None] | None = None
        self._changed = Condition()
        self._groups: list[_GroupInAir] = []
        self._queue: list[tuple[int, int, _GroupInAir]] = []
        """(place, index) of each episode that has not begun, in order, and its group."""
        self._open: dict[int, tuple[_GroupInAir, int]] = {}
        """Number of each episode that is being played to its group and index."""
        self._places, self._numbers = count(), count()
        self._version, self._begun, self._too_old = 0, 0, 0
        self._flying = self._closed = False
        self._error: BaseException | None = None
        self._measured = replace(self.statistics)
        self._since = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            if self._flying:
                # Only while the collector plays: a stopped collector refuses to play.
                self.collect.collector.stop()
        self._thread.shutdown(wait=False)
        if self._playing is not None:
            wait([self._playing], STOP_SECONDS)

    @property
    def statistics(self) -> CollectionStatistics:
        """See ``RolloutSource``."""
        return self.collect.collector.statistics

    @property
    def begun(self) -> int:
        """See ``RolloutSource``."""
        return self._begun

    def __call__(self, step: int) -> tuple[Batch, dict[str, float]]:
        """See ``RolloutSource``."""
        if step > self._begun:
            self.begin(step)

        def play(wanted: Sequence[Group], attempt: int) -> tuple[Batch, Batch]:
            if attempt:  # the first were begun before
                self._begin(wanted, step)
            return self._taken(step, len(wanted))

        played = self.collect.gather(step, play)
        too_old, self._too_old = self._too_old, 0
        return played, {TOO_OLD: float(too_old), **self._speed()}

    def begin(self, step: int) -> None:
        """See ``RolloutSource``."""
        self._begun = step
        self._begin(self.collect.plan(step)[0], step)
        if self._playing is None:
            self._playing = self._thread.submit(self._play)

    def finish(self) -> None:
        """Return at once: new weights wait for nothing."""

    def rest(self) -> None:
        """See ``RolloutSource``. Episodes that were begun are played to their end."""
        with self._changed:
            self._wait_for(lambda: not self._flying and not self._queue)

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``RolloutSource``."""
        self._engine.update_weights(weights, version)
        with self._changed:
            self._version = version

    def _begin(self, groups: Sequence[Group], step: int) -> None:
        with self._changed:
            for group in groups:
                asked = list(group.requests(self.collect.size, self.collect.seed, step))
                self._add(_GroupInAir(next(self._places), group, asked=asked))

    def _add(self, group: _GroupInAir) -> None:
        """Add a group that has no episode yet; the lock is held."""
        self._groups.append(group)
        self._enqueue(group, range(len(group.asked)))

    def _enqueue(self, group: _GroupInAir, indices: range) -> None:
        for index in indices:
            # A group that is begun again keeps its place, so it comes before all later groups.
            insort(self._queue, (group.place, index, group), key=lambda each: each[:2])
        self._changed.notify_all()

    def _taken(self, step: int, wanted: int) -> tuple[Batch, Batch]:
        """Wait for ``wanted`` groups that step ``step`` may learn from, and take them."""

        def there() -> bool:
            waits = any(each.again and each.age(step) == self._lag for each in self._unfinished())
            return not waits and len(self._groups) - len(self._unfinished()) >= wanted

        with self._changed:
            # The list is made first, because each turn changes ``_groups``.
            for group in [each for each in self._groups if each.age(step) > self._lag]:
                self._begin_again(group)
            self._wait_for(there)
            finished = [each for each in self._groups if each.finished]
            # Oldest weights first: a younger group can still be learned from in the next step.
            taken = sorted(finished, key=lambda each: (-each.age(step), each.place))[:wanted]
            for group in taken:
                self._groups.remove(group)
        size = self.collect.size
        both = [[(request, each.played[index]) for index, request in enumerate(each.asked)] for each in taken]
        first = [pair for pairs in both for pair in pairs[:size]]
        again = [pair for pairs in both for pair in pairs[size:]]
        return (
            self.collect.batch([asked for asked, _ in first], [played for _, played in first]),
            self.collect.further([asked for asked, _ in again], [played for _, played in again]),
        )

    def _unfinished(self) -> list[_GroupInAir]:
        return [each for each in self._groups if not each.finished]

    def _begin_again(self, group: _GroupInAir) -> None:
        """Drop a group and begin it again; the lock is held."""
        self._too_old += 1
        self._groups.remove(group)
        self._queue = [each for each in self._queue if each[2] is not group]
        # Without further attempts, which were made for the episodes that are dropped.
        asked = group.asked[: self.collect.size]
        self._add(_GroupInAir(group.place, group.group, asked=asked, again=True))

    def _wait_for(self, there: Callable[[], bool]) -> None:
        """Wait, with the lock, until the condition is met, or raise the error that ended the play."""
        while not there():
            if self._error is not None:
                raise self._error
            # With a limit, so that Ctrl-C is noticed.
            self._changed.wait(WAIT_SECONDS)

    def _speed(self) -> dict[str, float]:
        """Metrics of play since the last step's rollouts were taken."""
        before, since = self._measured, self._since
        self._measured, self._since = replace(self.statistics), time.perf_counter()
        return speed(self._measured - before, self._since - since)

    def _play(self) -> None:
        """Play whatever there is to play until the end; runs in the thread."""
        try:
            while True:
                with self._changed:
                    self._flying = False
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._queue or self._closed)
                    if self._closed:
                        return
                    self._flying = True
                self.collect.collector.play(self._episodes(), self._landed, self._version_of)
        except BaseException as error:
            # The learner waits for groups and not for this thread's future, so the error must wake it here.
            with self._changed:
                self._error, self._flying = error, False
                self._changed.notify_all()
            raise

    def _episodes(self) -> Iterator[tuple[int, EpisodeRequest] | None]:
        """The episodes in the order of the queue; None while others are played and the queue is empty."""
        while True:
            with self._changed:
                if not self._queue and not self._open:
                    return
                following = None
                if self._queue:
                    _, index, group = self._queue.pop(0)
                    # Later episodes begin with newer weights, but a group is as old as its oldest token.
                    if group.oldest is None:
                        group.oldest = self._version
                    number = next(self._numbers)
                    self._open[number] = group, index
                    following = number, group.asked[index]
            # Outside the lock: the collector plays until it asks for the next episode.
            yield following

    def _version_of(self, number: int) -> int:
        """The version of an episode that begins: its group's, so that all episodes of a group show the same
        skills of a library."""
        with self._changed:
            return self._open[number][0].oldest or 0

    def _landed(self, number: int, trajectory: Trajectory) -> None:
        """Keep an episode. After the last one of a group, its further attempts are begun."""
        with self._changed:
            group, index = self._open.pop(number)
            group.played[index] = trajectory
            # Episodes of a dropped group land too, but they must not ask for further attempts.
            if group in self._groups and not group.tried and len(group.played) == len(group.asked):
                group.tried = True
                first = len(group.asked)
                group.asked += self._attempts(group)
                self._enqueue(group, range(first, len(group.asked)))
            self._changed.notify_all()

    def _attempts(self, group: _GroupInAir) -> list[EpisodeRequest]:
        if self.collect.experience is None:
            return []
        trajectories = [group.played[index] for index in range(len(group.asked))]
        return self.collect.experience.attempts([each.task for each in group.asked], trajectories)
