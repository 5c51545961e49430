"""Environments served as tools of MCP from this process, on a free port of loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from time import sleep

from skillpress.core.interface import Environment
from skillpress.integrations.serving import (
    EnvironmentHost,
    Episodes,
    Metadata,
    ServingLimits,
    SessionSettings,
    TaskBook,
    listen,
    server_of,
)
from skillpress.integrations.serving.mcp_server import http_app, tools_of
from skillpress.rollouts.collection import ThreadVectorEnv
from tests.support.integrations.served import REWARD, TASKS, countdown


@contextmanager
def served_tools(
    make: Callable[[], Environment] = countdown,
    limits: ServingLimits = ServingLimits(),  # noqa: B008  frozen
) -> Iterator[str]:
    """The address of a server of the tools."""
    host = EnvironmentHost(ThreadVectorEnv(make, 60.0))
    offer = SessionSettings("countdown", TaskBook(TASKS), REWARD)
    prepared: Future[Episodes] = Future()
    prepared.set_result(Episodes(offer, host, limits))
    app = http_app(tools_of(prepared, Metadata("toy", "A toy.", "1")), limits)
    with listen("127.0.0.1", 0) as listening:
        server = server_of(app, limits, lifespan="on")
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()
            host.close()
