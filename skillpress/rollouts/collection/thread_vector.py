"""Environments that wait instead of compute (sandboxes, servers, devices), each in a thread of its own.

While one environment waits, the others continue and the process can use its core for other work. A thread
cannot be ended from outside. A thread that is late or aborted is abandoned together with its environment: it
ends when its call returns, and its answer is dropped. The slot gets a new environment. When the thread of an
environment with a ``close`` method ends, it calls this method to release the environment's resources.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from skillpress.core.errors import UserError
from skillpress.core.interface import Environment
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection.vector import BrokenEnvironmentError, RefusedEnvironmentError, StepResult

SECONDS = 300.0
"""Maximum time for one start or step."""
CLOSE_SECONDS = 30.0
"""Maximum time for an environment to release its resources."""


@runtime_checkable
class _Holder(Protocol):
    """An environment that holds resources outside itself."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Said:
    """A thread's answer, or the exception that it raised."""

    slot: _Slot
    answer: StepResult | Exception


@dataclass(eq=False)
class _Slot:
    """One environment and its thread."""

    number: int
    task: Task
    inbox: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    """A task to start, an action to take, or None to end."""
    thread: threading.Thread | None = None
    asked: str | None = None
    """What the thread is doing, in words; None while it is idle."""
    since: float = 0.0

    def ask(self, what: object) -> None:
        """Hand over a task or an action."""
        self.asked = "its start" if isinstance(what, Task) else f"the step {str(what)!r}"
        self.since = time.monotonic()
        self.inbox.put(what)

    def serve(self, make: Callable[[], Environment[Any]], outbox: queue.SimpleQueue[_Said]) -> None:
        """The main loop of the thread."""
        environment: Environment[Any] | None = None
        while (what := self.inbox.get()) is not None:
            answer: StepResult | Exception
            try:
                # In the thread that uses it, and once more if an earlier attempt raised an error.
                environment = environment or make()
                if isinstance(what, Task):
                    observation, info = environment.reset(what)
                    answer = StepResult(observation, False, False, info)
                else:
                    answer = StepResult(*environment.step(what))
            except Exception as error:  # noqa: BLE001  raised again in the thread that reads the answer
                answer = error
            outbox.put(_Said(self, answer))
        if isinstance(environment, _Holder):
            environment.close()


class ThreadVectorEnv:
    """``VectorEnvironment`` in threads of this process."""

    def __init__(
        self,
        make: Callable[[], Environment[Any]],
        seconds: float = SECONDS,
        close_shared: Callable[[], None] = lambda: None,
    ) -> None:
        """``make`` is called once in each slot's thread; a start or a step may take ``seconds``.

        ``close`` of this object calls ``close_shared``, which releases what the environments share.
        """
        self._make, self._seconds, self._close_shared = make, seconds, close_shared
        self._slots: dict[int, _Slot] = {}
        self._outbox: queue.SimpleQueue[_Said] = queue.SimpleQueue()
        self._found: list[tuple[int, StepResult]] = []
        """Answers that have not been returned yet. If an error is raised first, they stay here."""

    def start(self, tasks: Mapping[int, Task]) -> None:
        """See ``VectorEnvironment``."""
        for number, task in tasks.items():
            slot = self._slots.get(number)
            if slot is None:
                slot = self._slots[number] = _Slot(number, task)
                name = f"environment {number}"
                # A daemon: an abandoned thread must not keep the process alive.
                slot.thread = threading.Thread(
                    target=slot.serve, args=(self._make, self._outbox), name=name, daemon=True
                )
                slot.thread.start()
            slot.task = task
            slot.ask(task)

    def step(self, actions: Mapping[int, object]) -> None:
        """See ``VectorEnvironment``."""
        for number, action in actions.items():
            self._slots[number].ask(action)

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """See ``VectorEnvironment``.

        Raises:
            BrokenEnvironmentError: an environment raised an exception, or has not answered in time; the
                message names the task and the slot. The environment is abandoned.
        """
        ends = time.monotonic() + wait
        while any(slot.asked for slot in self._slots.values()):
            while not self._outbox.empty():
                self._take(self._outbox.get())
            self._refuse_the_late()
            left = min(ends, self._next_deadline()) - time.monotonic()
            if self._found or left <= 0:
                break
            with suppress(queue.Empty):
                self._take(self._outbox.get(timeout=left))
        found, self._found = self._found, []
        return found

    def abort(self) -> None:
        """Abandon every environment that is busy."""
        self._found.clear()
        for number, slot in list(self._slots.items()):
            if slot.asked:
                self.forget(number)

    def forget(self, slot: int) -> None:
        """See ``SeparateEnvironments``. A busy environment is abandoned."""
        left = self._slots.pop(slot, None)
        if left is not None:
            left.inbox.put(None)

    def close(self) -> None:
        """End the threads. Busy ones end when their call returns."""
        for slot in self._slots.values():
            slot.inbox.put(None)
        for slot in self._slots.values():
            # A busy thread may never return, so nothing waits for it.
            if not slot.asked and slot.thread is not None:
                slot.thread.join(CLOSE_SECONDS)
        self._slots.clear()
        self._close_shared()

    def _take(self, said: _Said) -> None:
        slot, answer = said.slot, said.answer
        # The answer of an abandoned thread; the slot has another environment now.
        if self._slots.get(slot.number) is not slot:
            return
        asked, slot.asked = slot.asked, None
        if isinstance(answer, Exception):
            self.forget(slot.number)
            kind = RefusedEnvironmentError if isinstance(answer, UserError) else BrokenEnvironmentError
            raise kind(
                f"{_named(slot)}: {asked} failed: {type(answer).__name__}: {answer}", slot.number
            ) from answer
        self._found.append((slot.number, answer))

    def _next_deadline(self) -> float:
        since = (slot.since for slot in self._slots.values() if slot.asked)
        return min(since, default=math.inf) + self._seconds

    def _refuse_the_late(self) -> None:
        late = [
            slot
            for slot in self._slots.values()
            if slot.asked and time.monotonic() - slot.since >= self._seconds
        ]
        if late:
            slot = min(late, key=lambda slot: slot.since)
            self.forget(slot.number)
            raise BrokenEnvironmentError(
                f"{_named(slot)}: {slot.asked} has not ended within {self._seconds:g} seconds "
                f"({len(late)} slots are as late)",
                slot.number,
            )


def _named(slot: _Slot) -> str:
    return f"task {slot.task.task_id} of {slot.task.environment} in slot {slot.number}"
