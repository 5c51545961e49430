"""Episodes of code in sandboxes: each has its own sandbox and survives its loss.

A sandbox may be killed through no fault of the agent: by the kernel's memory killer, by an operator, or
because the host is shared. An episode can be recreated from its task and the actions so far. So a lost
sandbox costs time and changes nothing: the episode is replayed in a new one, up to the interrupted action.
After some attempts it ends as ``lost="sandbox"``, which is stored like any other end. It is never left out,
and it stops no other episode.

Only time spent in the sandbox is counted: neither the policy's thinking, nor waiting for a sandbox, nor, in
calls of more than a second, waiting for a processor. So the contents of an episode do not depend on how busy
its engine and its machine are. An episode whose time runs out nevertheless ends as ``lost="time"``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol, TypeVar

from gymnasium.spaces import Space

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task
from skillpress.environments.text.spaces import AnyText
from skillpress.rollouts.sandbox import Limits, Sandbox, SandboxEndedError, SandboxLostError, SandboxPool
from skillpress.rollouts.sandbox.isolation import Kind
from skillpress.rollouts.sandbox.limits import MOST_WAITED

Result = TypeVar("Result")
Lease = Callable[[], AbstractContextManager[Sandbox]]
"""A sandbox for one episode, ended with the block: ``SandboxPool.sandbox`` or ``Sandbox.start``."""
StepResult = tuple[str, bool, bool, Info]
"""The return type of ``Environment.step``."""

ATTEMPTS = 3
"""Number of sandboxes that may be lost before the episode is lost."""
STOCK = 4
"""Number of sandboxes that are kept ready; two start at a time, in about 50 ms each."""
WAIT_SECONDS = 120.0
"""Maximum wait for a sandbox if all are in use or one is slow to start."""
LOST_SANDBOX = "sandbox"
"""``Info.lost`` of an episode whose sandboxes were lost."""
LOST_TIME = "time"
"""``Info.lost`` of an episode whose sandbox has used up its time."""


class EpisodeSandbox:
    """The sandbox of one attempt at an episode, and its time.

    If the agent's own code has ended the sandbox, the next call gets a new one, prepared like the first. The
    answer to the call that ended it has told the agent that the state is lost.
    """

    def __init__(self, lease: Lease, seconds: float) -> None:
        """``seconds``: maximum total time of work."""
        self._lease = lease
        self._held: AbstractContextManager[Sandbox] | None = None
        self._sandbox: Sandbox | None = None
        self.seconds_left = seconds
        """Remaining seconds of work; at 0 the episode is over."""
        self.prepare: Callable[[Sandbox], None] = lambda sandbox: None
        """Prepares a new sandbox for this episode."""
        self.told = ""
        """Why the last call got a new sandbox, if no earlier answer has said so: code in the background
        reached a limit. Empty if there is nothing to report."""

    def call(self, use: Callable[[Sandbox], Result]) -> Result:
        """Use the sandbox, only once: after a call that has ended it, a second use would find it lost.

        Raises:
            SandboxLostError: it is gone through no fault of the code in it, or none is available.
        """
        self.told = ""
        try:
            sandbox = self._working()
            began = time.monotonic() - sandbox.waited
            sandbox.ends_at = time.monotonic() + self.seconds_left
            try:
                return use(sandbox)
            finally:
                used = time.monotonic() - sandbox.waited - began
                self.seconds_left = max(0.0, self.seconds_left - used)
        except SandboxLostError:
            raise
        except SandboxEndedError as error:
            raise SandboxLostError(str(error)) from error

    def renew(self) -> None:
        """Give the sandbox back; the next call gets a new one."""
        held, self._held, self._sandbox = self._held, None, None
        if held is not None:
            held.__exit__(None, None, None)

    def _working(self) -> Sandbox:
        """The current sandbox, or a new one if its code has ended it."""
        if self._sandbox is not None and self._sandbox.alive:
            return self._sandbox
        if self._sandbox is not None and not self._sandbox.end_is_told:
            if not self._sandbox.reason:
                raise SandboxLostError("the sandbox was killed after it had answered")
            self.told = self._sandbox.reason
        self.renew()
        held = self._lease()
        self._sandbox, self._held = held.__enter__(), held
        self.prepare(self._sandbox)
        return self._sandbox


class Episode(Protocol):
    """One attempt at an episode of an environment. Each attempt gets a new object, so the object must own
    everything that changes during play."""

    def start(self) -> tuple[str, Info]:
        """See ``Environment.reset``."""
        ...

    def act(self, action: str) -> StepResult:
        """See ``Environment.step``.

        Raises:
            SandboxLostError: raised by its ``EpisodeSandbox``.
        """
        ...


class SandboxedEnvironment:
    """An environment whose episodes have one sandbox each; ``close`` gives the last one back."""

    action_space: Space[str] = AnyText(1 << 20)
    observation_space: Space[str] = AnyText(1 << 20)

    def __init__(
        self,
        begin: Callable[[Task, EpisodeSandbox], Episode],
        lease: Lease,
        seconds: float,
        attempts: int = ATTEMPTS,
    ) -> None:
        """Args:
        begin: makes a task's episode, not started yet.
        seconds: maximum total time of work of one attempt's sandbox; then the episode is lost.
        attempts: number of sandboxes that may be lost before the episode is lost."""
        self._begin, self._lease, self._seconds, self._attempts = begin, lease, seconds, attempts
        self._sandbox: EpisodeSandbox | None = None
        self._episode: Episode | None = None
        self._task: Task | None = None
        self._actions: list[str] = []
        self._losses = 0

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start in a new sandbox. If all sandboxes are lost, the first step ends the episode."""
        self._task, self._actions, self._losses = task, [], 0
        while self._losses < self._attempts:
            try:
                return self._start()
            except SandboxLostError:
                self._lose()
        return "The sandbox was lost.", Info()

    def step(self, action: str) -> StepResult:
        """Act. If the sandbox is lost, repeat all earlier actions in a new one and act again."""
        while self._losses < self._attempts:
            try:
                if self._episode is None:
                    self._start()
                    for earlier in self._actions:
                        self._act(earlier)
                answer = self._act(action)
            except SandboxLostError:
                self._lose()
            else:
                self._actions.append(action)
                if answer[1] or answer[2]:
                    self.close()
                return answer
        return "The sandbox was lost.", True, False, Info(lost=LOST_SANDBOX, action=action)

    def close(self) -> None:
        """Give the sandbox back."""
        sandbox, self._sandbox, self._episode = self._sandbox, None, None
        if sandbox is not None:
            sandbox.renew()

    def _start(self) -> tuple[str, Info]:
        self.close()
        assert self._task is not None, "an environment is reset before it is used"
        self._sandbox = EpisodeSandbox(self._lease, self._seconds)
        episode = self._begin(self._task, self._sandbox)
        started = episode.start()
        self._episode = episode
        return started

    def _act(self, action: str) -> StepResult:
        assert self._episode is not None and self._sandbox is not None
        observation, terminated, truncated, info = self._episode.act(action)
        if not terminated and not self._sandbox.seconds_left:
            return observation, True, False, replace(info, lost=LOST_TIME)
        return observation, terminated, truncated, info

    def _lose(self) -> None:
        self._losses += 1
        self.close()


class PooledEnvironments:
    """Environments of this process whose sandboxes come from one pool (``section.SharedEnvironments``)."""

    def __init__(
        self,
        make: Callable[[Lease], Environment],
        limits: Limits,
        slots: int,
        seconds: float,
        *,
        isolation: Kind = "bubblewrap",
    ) -> None:
        """Args:
        make: makes an environment that gets its sandboxes from the given lease.
        limits: limits of each sandbox.
        slots: number of concurrent environments.
        seconds: maximum total time of work of one episode's sandbox.
        isolation: what isolates each sandbox."""
        self._make = make
        ready = min(slots, STOCK)
        self._pool = SandboxPool(
            limits, ready=ready, max_concurrency=slots, wait_seconds=WAIT_SECONDS, isolation=isolation
        )
        self.seconds = ATTEMPTS * ((1 + MOST_WAITED) * seconds + WAIT_SECONDS)
        """Maximum time of a start or a step, reached if the whole episode is replayed."""

    def __call__(self) -> Environment:
        """See ``SharedEnvironments``."""
        return self._make(self._pool.sandbox)

    def close(self) -> None:
        """End the pool's stock; a sandbox in use ends with its environment."""
        self._pool.close()
