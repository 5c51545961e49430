"""One episode of a program at the endpoint: its requests in order, and their pending answers.

Requests come in on the server's thread; the episode is played on another thread, which takes one request
after the other (``next``) and answers it (``answer``). A program may send several requests at once: they
queue, and can be inspected meanwhile (``queued``). A request is *asked* once and recorded before it is
answered. A retry waits for the same answer and is not recorded again. A request is a retry if its client
marks it, or if it equals a request whose client left before the answer, because not all clients mark theirs.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from skillpress.rollouts.programs.budget import Budget
from skillpress.rollouts.programs.requests import Asked, ModelRequest, RefusedRequestError, Reply

FORGET_SECONDS = 30.0
"""How long an episode waits for the server's thread."""
Refusal = Callable[[], RefusedRequestError]
"""Makes the error with which a request is refused; each request gets its own."""


def gone() -> RefusedRequestError:
    """The refusal of late requests."""
    return RefusedRequestError("the episode of this key has ended", code="episode_ended", status=410)


def engine_failed() -> RefusedRequestError:
    """The refusal of open requests when the engine has failed or the run was stopped; clients may retry."""
    return RefusedRequestError(
        "no answer comes from the engine behind this endpoint; ask again", code="engine_failed", status=503
    )


def calls_spent() -> RefusedRequestError:
    """The refusal of requests beyond the limit of calls."""
    return RefusedRequestError("the episode has made all the calls that it may", code="calls_spent")


def never() -> bool:
    """The ``left`` of a client that never leaves."""
    return False


@dataclass(frozen=True)
class Ended:
    """The program has ended."""

    why: str | None
    """The failure, in a word: ``crashed``, ``out_of_time``; None if it ended by itself."""
    printed: str = ""
    """Its output, or its return value as JSON, followed by an error's text if there was one."""


@dataclass(eq=False)
class Waiting:
    """A request and the future that its HTTP request waits for."""

    asked: Asked
    future: asyncio.Future[Reply]


def new_key() -> str:
    """A key that no client can guess."""
    return f"sk-{uuid4().hex}"


@dataclass
class Session:
    """The requests of one episode."""

    loop: asyncio.AbstractEventLoop
    """The server's loop."""
    key: str = field(default_factory=new_key)
    budget: Budget = field(default_factory=Budget)
    """The server's resources that the episode uses now."""
    closed: Refusal | None = None
    """The refusal of late requests; None while the episode is played."""
    tokens_per_character: float = 0.25
    """The ratio in the last answered request's prompt, used to estimate the next one; initially a guess."""
    _inbox: queue.SimpleQueue[Waiting | Ended] = field(default_factory=queue.SimpleQueue)
    _seen: Counter[str] = field(default_factory=Counter)
    """How often each request was asked since the program began."""
    _known: dict[str, Waiting] = field(default_factory=dict)
    """Every request, answered or not, by its draw."""
    _queued: dict[str, Asked] = field(default_factory=dict)
    """The requests in the inbox, by draw."""
    _last: dict[str, tuple[list[Waiting], Callable[[], bool]]] = field(default_factory=dict)
    """Maps a digest to its newest requests, for which a retry waits, and whether their client has left."""

    # On the server's thread.

    async def ask(self, request: ModelRequest, retry: bool, left: Callable[[], bool] = never) -> list[Reply]:
        """The replies to a request, one for each response that it wants.

        Args:
            retry: whether the client marks it as a repetition of a request whose answer it has not received.
            left: whether the client has left and can receive no answer.

        Raises:
            RefusedRequestError: the episode ends or fails before the answer is ready.
        """
        if self.closed is not None:
            raise self.closed()
        digest = request.digest
        last, has_gone = self._last.get(digest, ([], never))
        again = last if retry or has_gone() else None
        waiting = again or self._all(
            [Asked(request, self._next_number(digest)) for _ in range(request.number)]
        )
        self._last[digest] = waiting, left
        replies = list(await asyncio.gather(*(asyncio.shield(each.future) for each in waiting)))
        if replies[0].prompt_tokens:
            self.tokens_per_character = replies[0].prompt_tokens / request.size
        return replies

    def _next_number(self, digest: str) -> int:
        self._seen[digest] += 1
        return self._seen[digest] - 1

    def _all(self, asked: Sequence[Asked]) -> list[Waiting]:
        """The requests in the episode's queue. A restarted program repeats its requests; those answered
        before get their answers at once.
        """
        new = {each.draw: each for each in asked if each.draw not in self._known}
        self._known |= {draw: Waiting(each, self.loop.create_future()) for draw, each in new.items()}
        self._queued |= new  # before the first is in the inbox: who takes it sees the others beside it
        for draw in new:
            self._inbox.put(self._known[draw])
        return [self._known[each.draw] for each in asked]

    # On the episode's thread.

    def next(self, seconds: float) -> Waiting | Ended | None:
        """The program's next request or its end; None if neither comes within this time."""
        try:
            heard = self._inbox.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None
        if isinstance(heard, Waiting):
            self._queued.pop(heard.asked.draw, None)
        return heard

    def queued(self) -> list[Asked]:
        """The requests that ``next`` has not returned, in order; called on any thread."""
        return list(self._queued.values())  # one step of the interpreter, so no other thread comes between

    def answer(self, waiting: Waiting, reply: Reply) -> None:
        """Answer a request."""
        self._call(_settle, waiting.future, reply)

    def refuse(self, waiting: Waiting, reason: Refusal) -> None:
        """Refuse a request."""
        self._call(_fail, waiting.future, reason())

    def ended(self, end: Ended) -> None:
        """Note that the program has ended; called by its runner, on any thread."""
        self._inbox.put(end)

    def begin_again(self) -> None:
        """Take a new key, since the program starts from its beginning. Answers are kept. Requests that the
        last program made and that were not answered are forgotten."""
        self.key, done = new_key(), threading.Event()
        self._call(self._forget, done)
        done.wait(FORGET_SECONDS)

    def close(self, reason: Refusal = gone) -> None:
        """End the session: open and late requests are refused with this reason."""
        self._call(self._close, reason)

    def _forget(self, done: threading.Event) -> None:
        self._seen.clear()
        self._last.clear()
        while not self._inbox.empty():
            self._inbox.get_nowait()
        for draw in self._queued:
            _fail(self._known.pop(draw).future, gone())
        self._queued.clear()
        done.set()

    def _close(self, reason: Refusal) -> None:
        self.closed = reason
        for waiting in self._known.values():
            _fail(waiting.future, reason())
        self._known.clear()
        self._queued.clear()
        self._last.clear()

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *arguments)


def _settle(future: asyncio.Future[Reply], reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)


def _fail(future: asyncio.Future[Reply], reason: RefusedRequestError) -> None:
    if not future.done():
        future.set_exception(reason)
        future.exception()  # a client that has gone never asks for it
