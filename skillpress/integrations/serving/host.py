"""Environments for many callers at once, each caller in its own slot.

A vector environment serves one caller, so one thread owns it and all others send that thread their requests.
Engines that compute run in worker processes, as they do when episodes are collected. All others get a thread
each, so that a slow or failing environment does not delay the rest. Every answer is a future.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection
from skillpress.rollouts.collection import (
    BrokenEnvironmentError,
    SeparateEnvironments,
    StepResult,
    ThreadVectorEnv,
    WorkerVectorEnv,
)
from skillpress.rollouts.collection.thread_vector import SECONDS
from skillpress.rollouts.workers import cores

TURN_SECONDS = 0.005
"""The longest wait for new requests, in seconds, while environments are at work."""

WORKER_SECONDS = 900.0
"""Maximum time of one answer of a worker process, which may wait for other slots' jobs and be replaced."""


@dataclass(frozen=True)
class _Question:
    slot: int
    what: Task | str | None
    """A task to start, an action to take, or None to forget the slot."""
    answer: Future[StepResult] = field(default_factory=Future)


class EnvironmentHost:
    """Runs a vector environment for many callers; ``close`` ends both."""

    def __init__(self, environments: SeparateEnvironments, seconds: float = SECONDS) -> None:
        """``seconds``: maximum time of one answer, which the environments themselves enforce."""
        self._environments, self.seconds = environments, seconds
        self._inbox: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._waiting: dict[int, Future[StepResult]] = {}
        """Slot to the future of its answer."""
        self._ended: BrokenEnvironmentError | None = None
        """The reason why requests are not answered any more."""
        self._thread = threading.Thread(target=self._work, name="environments", daemon=True)
        self._thread.start()

    def ask(self, slot: int, what: Task | str) -> Future[StepResult]:
        """Start a task in a slot, or act there. A slot takes one request at a time.

        The future raises a ``BrokenEnvironmentError`` if the environment has failed for good. The slot can
        then be started again.
        """
        question = _Question(slot, what)
        self._inbox.put(question)
        if self._ended is not None:
            self._refuse(self._ended)
        return question.answer

    def forget(self, slot: int) -> None:
        """End the episode of a slot; no request for the slot may be open."""
        self._inbox.put(_Question(slot, None))

    def close(self) -> None:
        """End all environments; open requests get an exception."""
        self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        """The thread's main loop. However it ends, every open request gets an answer."""
        ended = BrokenEnvironmentError("the server is ending")
        try:
            while True:
                for question in self._questions():
                    self._pass_on(question)
                self._hand_out()
        except _ClosedError:
            self._environments.close()
        except Exception as error:
            ended = _broken(error)
            raise
        finally:
            self._disappoint(ended)
            self._ended = ended
            self._refuse(ended)

    def _refuse(self, ended: BrokenEnvironmentError) -> None:
        """Refuse all requests that were not processed."""
        with suppress(queue.Empty):
            while True:
                question = self._inbox.get_nowait()
                if question is not None and question.what is not None:
                    question.answer.set_exception(ended)

    def _questions(self) -> Iterator[_Question]:
        """All requests that have arrived; at least one if no answer is pending.

        Raises:
            _ClosedError: no more requests will come.
        """
        while not self._waiting or not self._inbox.empty():
            question = self._inbox.get()
            if question is None:
                raise _ClosedError
            yield question

    def _pass_on(self, question: _Question) -> None:
        slot, what = question.slot, question.what
        if what is None:
            self._environments.forget(slot)
            return
        self._waiting[slot] = question.answer
        try:
            if isinstance(what, str):
                self._environments.step({slot: what})
            else:
                self._environments.start({slot: what})
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            self._waiting.pop(slot).set_exception(_broken(error))

    def _hand_out(self) -> None:
        """Pass the answers that are ready to their futures."""
        if not self._waiting:
            return
        try:
            found = self._environments.completed(TURN_SECONDS)
        except BrokenEnvironmentError as error:
            if error.slot is not None:
                self._waiting.pop(error.slot).set_exception(error)
                return
            self._disappoint(error)
            self._environments.abort()
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            self._disappoint(_broken(error))
            self._environments.abort()
        else:
            for slot, answer in found:
                self._waiting.pop(slot).set_result(answer)

    def _disappoint(self, error: BrokenEnvironmentError) -> None:
        """Fail all pending requests with this error."""
        for waiting in self._waiting.values():
            waiting.set_exception(error)
        self._waiting.clear()


class _ClosedError(Exception):
    """The host has to end."""


def _broken(error: Exception) -> BrokenEnvironmentError:
    """The error that callers get if it concerns more than one episode."""
    broken = BrokenEnvironmentError(f"{type(error).__name__}: {error}")
    broken.__cause__ = error
    return broken


def host_of(environment: EnvironmentSection, slots: int) -> EnvironmentHost:
    """A host for this section's environments.

    Args:
        slots: the most slots in use at once.
    """
    if environment.hosting == "workers":
        return EnvironmentHost(WorkerVectorEnv(environment.make, min(cores(), slots)), WORKER_SECONDS)
    if environment.offers("make_shared"):
        shared = environment.make_shared(slots)
        return EnvironmentHost(ThreadVectorEnv(shared, shared.seconds, shared.close), shared.seconds)
    return EnvironmentHost(ThreadVectorEnv(environment.make))
