"""One environment that is played on another machine, and on a further one if that is lost.

An episode is recreated from its task and its actions so far. Environments are deterministic, so a replay must
end at the observation that the agent saw; a different one is an error if the environment only computes. If it
runs an agent's code, which may print the time, the difference is reported and the episode continues, as after
the loss of a sandbox on this machine.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from gymnasium.spaces import Space, Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection.vector import BrokenEnvironmentError, StepResult
from skillpress.rollouts.remote.slot import FailedError, LostError, Slot

if TYPE_CHECKING:
    from skillpress.rollouts.remote.pool import WorkersPool

_LOG = logging.getLogger(__name__)

ATTEMPTS = 5
"""Number of connections that may be lost during one step before the step is considered the cause."""


class RemoteEnvironment:
    """``Environment`` whose actions are texts; ``close`` gives its slot back."""

    action_space: Space[str] = Text(max_length=1 << 20)
    observation_space: Space[str] = Text(max_length=1 << 20)

    def __init__(self, pool: WorkersPool) -> None:
        self._pool = pool
        self._task: Task | None = None
        self._actions: list[str] = []
        """The actions that were answered."""
        self._seen = ""
        """The last observation."""

    def reset(self, task: Task) -> tuple[str, Info]:
        """See ``Environment``."""
        self._pool.leave(self)
        self._task, self._actions = task, []
        answer = self._answer(None)
        return answer.observation, answer.info

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """See ``Environment``."""
        answer = self._answer(action)
        self._actions.append(action)
        return answer.observation, answer.terminated, answer.truncated, answer.info

    def close(self) -> None:
        """Give the slot back."""
        self._pool.leave(self)

    def _answer(self, action: str | None) -> StepResult:
        """The answer to an action, or to the start of the task."""
        ends = time.monotonic() + self._pool.patience
        lost: list[str] = []
        while len(lost) < ATTEMPTS:
            slot, mine = self._pool.take(self, ends)
            try:
                answer = self._played(slot, mine, action, ends)
            except LostError as error:
                self._pool.lose(slot, str(error))
                lost.append(f"{slot.url} ({slot.offer.told}): {error}")
                continue
            except FailedError:
                self._pool.give_back(slot)
                raise
            self._seen = answer.observation
            if answer.terminated or answer.truncated:
                self._pool.give_back(slot)
            else:
                self._pool.rest(self, slot)
            return answer
        raise BrokenEnvironmentError(
            f"{ATTEMPTS} connections were lost during one step, which may be its fault: {'; '.join(lost)}"
        )

    def _played(self, slot: Slot, mine: bool, action: str | None, ends: float) -> StepResult:
        """The answer of this slot, which first replays the episode if it does not hold it.

        Raises:
            LostError: the machine does not answer in time.
            FailedError: the environment has failed there.
        """
        assert self._task is not None, "an environment is reset before it is used"
        if action is None:
            return slot.start(self._task, ends - time.monotonic())
        if not mine:
            answer = slot.start(self._task, ends - time.monotonic())
            for earlier in self._actions:
                answer = slot.act(earlier, ends - time.monotonic())
            self._compare(slot, answer.observation)
        return slot.act(action, ends - time.monotonic())

    def _compare(self, slot: Slot, observation: str) -> None:
        if observation == self._seen:
            return
        assert self._task is not None
        said = (
            f"task {self._task.task_id} replayed on {slot.url} differs after {len(self._actions)} actions: "
            f"{self._seen!r} became {observation!r}"
        )
        if self._pool.strict:
            raise FailedError(said)
        _LOG.warning("%s", said)
