"""Episodes of code in sandboxes: each has one of its own, and outlives the loss of it.

A sandbox may be killed by what is no doing of the agent's: the kernel's memory killer, an operator, a host
that is shared. An episode is recreated from its task and the actions so far, so a lost sandbox costs time and
changes nothing: the episode is played again in a fresh one, up to the action that was under way. After some
attempts it ends as ``lost="sandbox"``, which is stored like any other end; it is never left out, and no other
episode is stopped by it.

Time is counted where it is spent, in the sandbox, and never while the policy thinks, so that what an episode
holds does not depend on how busy its engine is.
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
from skillpress.play.sandbox import Limits, Sandbox, SandboxEndedError, SandboxLostError, SandboxPool

Result = TypeVar("Result")
Lease = Callable[[], AbstractContextManager[Sandbox]]
"""A sandbox for one episode, ended with the block: ``SandboxPool.sandbox``, or ``Sandbox.start``."""
StepResult = tuple[str, bool, bool, Info]
"""What ``Environment.step`` returns."""

ATTEMPTS = 3
"""Sandboxes that are lost before an episode is."""
STOCK = 4
"""Sandboxes that are kept ready; two start at a time, in some 50 ms each."""
WAIT_SECONDS = 120.0
"""For a sandbox, where all are in use or one is slow to start."""
LOST_SANDBOX = "sandbox"
"""``Info.lost`` of an episode whose sandboxes were lost."""
LOST_TIME = "time"
"""``Info.lost`` of an episode whose sandbox has worked for as long as it may."""


class EpisodeSandbox:
    """The sandbox of one attempt at an episode, and its time.

    Where the agent's own code has ended the sandbox, the next call gets a fresh one, prepared like the first:
    the answer of the call that ended it has told the agent that the state is lost.
    """

    def __init__(self, lease: Lease, seconds: float) -> None:
        """``seconds``: how long it may work in all."""
        self._lease = lease
        self._held: AbstractContextManager[Sandbox] | None = None
        self._sandbox: Sandbox | None = None
        self.seconds_left = seconds
        """Of work; at 0 the episode is over."""
        self.prepare: Callable[[Sandbox], None] = lambda sandbox: None
        """Makes a fresh sandbox ready for this episode."""
        self.told = ""
        """Why the last call found a fresh sandbox, where no answer before it has said so: a limit that code
        in the background has reached. Empty where there is nothing to tell."""

    def call(self, use: Callable[[Sandbox], Result]) -> Result:
        """Use the sandbox, once: after a call that has ended it, another one would find it lost.

        Raises:
            SandboxLostError: it is gone, by no fault of the code in it, or there is none to be had.
        """
        began, self.told = time.monotonic(), ""
        try:
            sandbox = self._working()
            sandbox.ends_at = began + self.seconds_left
            return use(sandbox)
        except SandboxLostError:
            raise
        except SandboxEndedError as error:
            raise SandboxLostError(str(error)) from error
        finally:
            self.seconds_left = max(0.0, self.seconds_left - (time.monotonic() - began))

    def renew(self) -> None:
        """Give the sandbox back; the next call gets a fresh one."""
        held, self._held, self._sandbox = self._held, None, None
        if held is not None:
            held.__exit__(None, None, None)

    def _working(self) -> Sandbox:
        """The sandbox as it is, or a fresh one in place of one that its code has ended."""
        if self._sandbox is not None and self._sandbox.alive:
            return self._sandbox
        if self._sandbox is not None and not self._sandbox.end_is_told:
            if not self._sandbox.reason:
                raise SandboxLostError("the sandbox was killed after its last answer")
            self.told = self._sandbox.reason
        self.renew()
        held = self._lease()
        self._sandbox, self._held = held.__enter__(), held
        self.prepare(self._sandbox)
        return self._sandbox


class Episode(Protocol):
    """One attempt at an episode of an environment. It is made anew for each attempt, so all that changes
    while it is played must be its own."""

    def start(self) -> tuple[str, Info]:
        """See ``Environment.reset``."""
        ...

    def act(self, action: str) -> StepResult:
        """See ``Environment.step``.

        Raises:
            SandboxLostError: its ``EpisodeSandbox`` raised it.
        """
        ...


class SandboxedEnvironment:
    """An environment whose episodes have a sandbox each; ``close`` gives the last one back."""

    action_space: Space[str] = AnyText(1 << 20)
    observation_space: Space[str] = AnyText(1 << 20)

    def __init__(
        self,
        begin: Callable[[Task, EpisodeSandbox], Episode],
        lease: Lease,
        seconds: float,
        attempts: int = ATTEMPTS,
    ) -> None:
        """
        Args:
            begin: a task's episode, not started yet.
            seconds: how long the sandbox of one attempt may work in all; then the episode is lost.
            attempts: how many sandboxes may be lost before the episode is.
        """
        self._begin, self._lease, self._seconds, self._attempts = begin, lease, seconds, attempts
        self._sandbox: EpisodeSandbox | None = None
        self._episode: Episode | None = None
        self._task: Task | None = None
        self._actions: list[str] = []
        self._losses = 0

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start in a fresh sandbox; where none lasts, the first step ends the episode."""
        self._task, self._actions, self._losses = task, [], 0
        while self._losses < self._attempts:
            try:
                return self._start()
            except SandboxLostError:
                self._lose()
        return "The sandbox was lost.", Info()

    def step(self, action: str) -> StepResult:
        """Act; where the sandbox is lost, act again in a fresh one after all earlier actions."""
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
    """Environments of this process whose sandboxes come from one pool (``bundle.SharedEnvironments``)."""

    def __init__(
        self,
        make: Callable[[Lease], Environment],
        limits: Limits,
        slots: int,
        seconds: float,
        sandboxes_each: int = 1,
    ) -> None:
        """
        Args:
            make: an environment that takes its sandboxes from there.
            limits: of each sandbox.
            slots: environments at once.
            seconds: how long one episode's sandbox may work in all.
            sandboxes_each: how many an environment holds at the same time.

        Raises:
            SandboxUnavailableError: this machine cannot build walls; the message names cause and cure.
        """
        self._make = make
        self._pool = SandboxPool(
            limits,
            ready=min(slots, STOCK),
            max_concurrency=slots * sandboxes_each,
            wait_seconds=WAIT_SECONDS,
        )
        self.seconds = ATTEMPTS * (seconds + WAIT_SECONDS)
        """The longest that a start or a step may take: one that plays all of the episode again."""

    def __call__(self) -> Environment:
        """See ``SharedEnvironments``."""
        return self._make(self._pool.sandbox)

    def close(self) -> None:
        """End the pool's stock; a sandbox in use ends with its environment."""
        self._pool.close()
