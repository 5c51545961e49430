"""Waiting for answers: hand over questions, then take answers as they come, never without a deadline.

Engines, agents and vector environments share one form. ``submit`` (or ``start`` and ``step``) hands
over and returns at once; ``completed(wait)`` gives what has been answered since, and waits at most
``wait`` seconds for the first. This is for callers that want all answers before they go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

Answer = TypeVar("Answer")


class Keyed(Protocol):
    """A question with its asker's number."""

    @property
    def key(self) -> int:
        """Unique among the questions that are not answered yet."""
        ...


Question = TypeVar("Question", bound=Keyed)
Asked = TypeVar("Asked", bound=Keyed, contravariant=True)
Given = TypeVar("Given", covariant=True)


class Answering(Protocol[Asked, Given]):
    """Whoever answers, an engine or an agent."""

    def submit(self, requests: Sequence[Asked]) -> None: ...

    def completed(self, wait: float) -> Sequence[tuple[int, Given]]: ...

    def abort(self) -> None: ...


WAIT_SECONDS = 1.0
"""One wait; Ctrl-C and deadlines are looked at after it."""


class UnansweredError(RuntimeError):
    """Nothing was answered within a deadline; the message says who did not answer, and what."""


def answers_to(
    keys: Iterable[int],
    completed: Callable[[float], Sequence[tuple[int, Answer]]],
    seconds: float,
    who: str,
) -> dict[int, Answer]:
    """The answers to these questions, as they came.

    Args:
        keys: the questions, handed over before; nobody else has asked.
        seconds: from one answer to the next, at most.
        who: is asked, for the message.

    Raises:
        UnansweredError: the deadline has passed.
    """
    missing = set(keys)
    found: dict[int, Answer] = {}
    last = time.monotonic()
    while missing:
        new = completed(min(WAIT_SECONDS, seconds))
        if new:
            found |= new
            missing -= found.keys()
            last = time.monotonic()
        elif time.monotonic() - last > seconds:
            raise UnansweredError(
                f"{who} has not answered {len(missing)} of {len(missing) + len(found)} questions "
                f"({sorted(missing)[:5]} ...) within {seconds:g} seconds"
            )
    return found


def ask(
    answering: Answering[Question, Answer], questions: Sequence[Question], seconds: float
) -> list[Answer]:
    """One answer per question, in order; nobody else may have asked.

    Raises:
        UnansweredError: nothing was answered for so many seconds; what is left is aborted, as after any
            other error.
    """
    answering.submit(questions)
    keys = [question.key for question in questions]
    try:
        found = answers_to(keys, answering.completed, seconds, f"the {type(answering).__name__}")
    except BaseException:
        answering.abort()
        raise
    return [found[key] for key in keys]
