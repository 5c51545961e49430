"""Environments served from this process, on a free port of loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from skillpress.core.interface import Environment
from skillpress.core.trajectory import Task
from skillpress.environments.section import environment_class
from skillpress.integrations.serving import (
    EnvironmentHost,
    Metadata,
    ServingLimits,
    SessionSettings,
    TaskBook,
    listen,
    make_app,
    server_of,
)
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.collection import ThreadVectorEnv
from tests.support.integrations.running import running

SECTION = environment_class("countdown").model_validate(
    {
        "name": "countdown",
        "max_steps": 8,
        "min_numbers": 3,
        "max_numbers": 4,
        "min_target": 10,
        "max_target": 999,
    }
)
TASKS = [
    Task(f"{target}", "countdown", 0, {"target": target, "numbers": numbers})
    for target, numbers in ((6, [1, 2, 3]), (54, [80, 2, 28, 1]), (10, [5, 2, 1]), (7, [1, 2, 4]))
]
REWARD = OutcomeReward(success=10.0, invalid_penalty=0.01)


def countdown() -> Environment:
    """Episodes of at most eight steps."""
    return SECTION.make()


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    server: uvicorn.Server

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self.server.server_state.connections)

    def cut(self) -> None:
        """Close every connection, as if a cable were pulled."""
        for connection in list(self.server.server_state.connections):
            connection.loop.call_soon_threadsafe(connection.transport.abort)


@contextmanager
def served(
    make: Callable[[], Environment] = countdown,
    tasks: Sequence[Task] = TASKS,
    limits: ServingLimits = ServingLimits(),  # noqa: B008  frozen
    seconds: float = 60.0,
    port: int = 0,
) -> Iterator[Served]:
    """A server of these tasks, whose steps may take ``seconds``."""
    host = EnvironmentHost(ThreadVectorEnv(make, seconds))
    app = make_app(
        SessionSettings("countdown", TaskBook(tasks), REWARD), host, Metadata("toy", "A toy.", "1"), limits
    )
    with listen("127.0.0.1", port) as listening:
        server = server_of(app, limits)
        try:
            with running(server, listening) as address:
                yield Served(address, server)
        finally:
            host.close()
