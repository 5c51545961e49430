"""Waiting for answers: submit questions, then take answers as they arrive, always with a deadline.

Engines, agents and vector environments share one form. ``submit`` (or ``start`` and ``step``) hands
questions over and returns at once. ``completed(wait)`` returns the answers that came since the last call,
and waits at most ``wait`` seconds for the first answer. The functions here are for callers that want all
answers before they go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

Answer = TypeVar("Answer")


class Keyed(Protocol):
    """A question with the number that the caller gave it."""

    @property
    def key(self) -> int:
        """Unique among the unanswered questions."""


Question = TypeVar("Question", bound=Keyed)
Asked = TypeVar("Asked", bound=Keyed, contravariant=True)
Given = TypeVar("Given", covariant=True)


class Answering(Protocol[Asked, Given]):
    """An engine or an agent: it takes questions and returns answers."""

    def submit(self, requests: Sequence[Asked]) -> None: ...

    def completed(self, wait: float) -> Sequence[tuple[int, Given]]: ...

    def abort(self) -> None: ...


WAIT_SECONDS = 1.0
"""Longest single wait. Ctrl-C and deadlines are checked after each."""


class UnansweredError(RuntimeError):
    """No answer came before the deadline; the message names who did not answer, and which questions."""


def answers_to(
    keys: Iterable[int],
    completed: Callable[[float], Sequence[tuple[int, Answer]]],
    seconds: float,
    who: str,
) -> dict[int, Answer]:
    """The answers to these questions, in the order of arrival.

    Args:
        keys: the questions, which were submitted before; no other question may be waiting.
        seconds: the longest time between one answer and the next.
        who: who answers, for the message.
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
                f"{who} did not answer {len(missing)} of {len(missing) + len(found)} questions "
                f"({sorted(missing)[:5]} ...) within {seconds:g} seconds"
            )
    return found


def ask(
    answering: Answering[Question, Answer], questions: Sequence[Question], seconds: float
) -> list[Answer]:
    """One answer per question, in the order of the questions. No other question may be waiting.

    Raises:
        UnansweredError: no answer came for this many seconds. The remaining questions are aborted, as after
            any other error.
    """
    answering.submit(questions)
    keys = [question.key for question in questions]
    try:
        found = answers_to(keys, answering.completed, seconds, f"the {type(answering).__name__}")
    except BaseException:
        answering.abort()
        raise
    return [found[key] for key in keys]
