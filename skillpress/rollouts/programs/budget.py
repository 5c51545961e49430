"""Limits of one episode's use of the endpoint at a time: bytes of bodies, and responses that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from skillpress.rollouts.programs.requests import RefusedRequestError

BYTES_IN_FLIGHT = 32 << 20
"""Maximum number of bytes of all request bodies of an episode that are not answered yet."""
OPEN_RESPONSES = 512
"""Maximum number of responses that one episode may wait for at once."""


@dataclass
class Budget:
    """The amounts that an episode uses now. Only the server's thread uses this object."""

    bytes_in_flight: int = 0
    open_responses: int = 0

    @contextmanager
    def body(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of a request's body until the request is answered.

        Yields: a function to call with the number of received bytes; it raises RefusedRequestError if the
        episode's bodies together exceed the limit.
        """
        mine = 0

        def count(more: int) -> None:
            nonlocal mine
            if self.bytes_in_flight + more > BYTES_IN_FLIGHT:
                raise RefusedRequestError(
                    f"the episode's open requests have more than {BYTES_IN_FLIGHT >> 20} MiB; wait for "
                    "answers",
                    code="too_many_requests",
                    status=429,
                )
            mine += more
            self.bytes_in_flight += more

        try:
            yield count
        finally:
            self.bytes_in_flight -= mine

    @contextmanager
    def responses(self, number: int) -> Iterator[None]:
        """Count the responses that a request waits for.

        Raises:
            RefusedRequestError: the request wants more than an episode may ever have open, or the episode has
                too many open now.
        """
        if number > OPEN_RESPONSES:
            raise RefusedRequestError(
                f"n: is {number}, must be at most {OPEN_RESPONSES}", "n", code="invalid_value"
            )
        if self.open_responses + number > OPEN_RESPONSES:
            raise RefusedRequestError(
                f"the episode waits for {self.open_responses} responses and asks for {number} more, but at "
                f"most "
                f"{OPEN_RESPONSES} may be open; wait for answers",
                code="too_many_requests",
                status=429,
            )
        self.open_responses += number
        try:
            yield
        finally:
            self.open_responses -= number
