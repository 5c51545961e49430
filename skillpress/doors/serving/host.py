"""Environments for many callers at once, each in a slot of its own.

A vector environment is made for one caller, so one thread has it and all others ask that thread. Engines
that compute live in worker processes, as they do when episodes are collected; all others have a thread each,
so that one that is slow or fails holds nobody else up. An answer is a future.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentBundle, EnvironmentParameters
from skillpress.play.rollout import (
    BrokenEnvironmentError,
    SeparateEnvironments,
    StepResult,
    ThreadVectorEnv,
    WorkerVectorEnv,
)
from skillpress.play.workers import cores

TURN_SECONDS = 0.005
"""While environments are at work, new questions wait at most so long."""


@dataclass(frozen=True)
class _Question:
    slot: int
    what: Task | str | None
    """A task to start, an action to take, None to forget the slot."""
    answer: Future[StepResult] = field(default_factory=Future)


class EnvironmentHost:
    """Asks a vector environment for whoever wants to know; ``close`` ends both."""

    def __init__(self, environments: SeparateEnvironments) -> None:
        self._environments = environments
        self._inbox: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._waiting: dict[int, Future[StepResult]] = {}
        """Slot to who waits for its answer."""
        self._ended: BrokenEnvironmentError | None = None
        """Why nobody is answered any more."""
        self._thread = threading.Thread(target=self._work, name="environments", daemon=True)
        self._thread.start()

    def ask(self, slot: int, what: Task | str) -> Future[StepResult]:
        """Start a task in a slot, or act there. A slot is asked for one thing at a time.

        The future's exception is a ``BrokenEnvironmentError``: the environment is of no more use, and the
        slot can be started anew.
        """
        question = _Question(slot, what)
        self._inbox.put(question)
        if self._ended is not None:
            self._refuse(self._ended)
        return question.answer

    def forget(self, slot: int) -> None:
        """End what is in a slot; nobody may be waiting for it."""
        self._inbox.put(_Question(slot, None))

    def close(self) -> None:
        """End all environments; who still waits for one gets an exception."""
        self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        """The thread's whole life. Whatever ends it, nobody waits for it in vain."""
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
        """Answer all questions that nobody will look at any more."""
        with suppress(queue.Empty):
            while True:
                question = self._inbox.get_nowait()
                if question is not None and question.what is not None:
                    question.answer.set_exception(ended)

    def _questions(self) -> Iterator[_Question]:
        """All that were asked since; where nobody waits for anything, at least one.

        Raises:
            _ClosedError: there will be no more.
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
        """Give the answers that there are to those who wait for them."""
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
        """Nobody who waits now will have an answer."""
        for waiting in self._waiting.values():
            waiting.set_exception(error)
        self._waiting.clear()


class _ClosedError(Exception):
    """The host is to end."""


def _broken(error: Exception) -> BrokenEnvironmentError:
    """What callers are told of an error that is nobody's episode's alone."""
    broken = BrokenEnvironmentError(f"{type(error).__name__}: {error}")
    broken.__cause__ = error
    return broken


def host_of(bundle: EnvironmentBundle, section: EnvironmentParameters, slots: int) -> EnvironmentHost:
    """A host of this section's environments.

    Args:
        slots: how many are used at once, at most.
    """
    make = partial(bundle.make, section)
    if bundle.hosting == "workers":
        return EnvironmentHost(WorkerVectorEnv(make, min(cores(), slots)))
    if bundle.share is not None:
        shared = bundle.share(section, slots)
        return EnvironmentHost(ThreadVectorEnv(shared, shared.seconds, shared.close))
    return EnvironmentHost(ThreadVectorEnv(make))
