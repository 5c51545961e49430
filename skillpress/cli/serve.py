"""``skillpress serve``: an environment for agents of other libraries, over OpenEnv's protocol or over MCP.

    skillpress serve --environment countdown
    skillpress serve --environment alfworld --split train --port 8100 --sessions 128
    skillpress serve --environment alfworld --mcp
    skillpress serve --environment alfworld --mcp stdio

The environment and its tasks are those of an experiment: from params.yaml, then from params/ENVIRONMENT.yaml
if it exists, or from the overlays that --params names. A reset's seed chooses a task of --split.
docs/openenv.md describes OpenEnv's protocol and the limits, docs/mcp.md the tools, both with examples.
"""

from __future__ import annotations

import logging
import signal
from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING

from skillpress.cli.evaluations.options import add_address, add_parameter_options, address_of
from skillpress.cli.evaluations.parameters import tasks_of
from skillpress.cli.parameter_options import add_environment, playing_params
from skillpress.core.arguments import CommandParser, real, whole
from skillpress.core.errors import UserError
from skillpress.core.parsed_action import FORMAT_MEASURE
from skillpress.core.registry import ENVIRONMENTS
from skillpress.core.version import __version__
from skillpress.integrations.serving import (
    EnvironmentHost,
    Episodes,
    Metadata,
    ServingLimits,
    SessionSettings,
    TaskBook,
    host_of,
    listen,
    make_app,
    server_of,
)

_LOG = logging.getLogger(__name__)

if TYPE_CHECKING:
    import uvicorn

    from skillpress.core.interface import StepReward
    from skillpress.experiment.params import Params

PORT = 8000
"""The port that clients of the protocol try first."""
OPEN = "anyone who can reach this port can play and use this machine's CPUs; there is no password"
SPLITS = ("train", "validation", "test")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    limits = _limits(chosen)
    if chosen.mcp == "stdio":
        return _serve_here(chosen, limits)
    params = playing_params(chosen.environment, chosen.params, chosen.set)
    with listen(chosen.host, chosen.port) as listening:
        tasks = tasks_of(params, chosen.split)
        host = host_of(params.environment, limits.sessions)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with closing(host), suppress(KeyboardInterrupt):  # the usual way to end it
            offer = SessionSettings(chosen.environment, TaskBook(tasks), reward_of(params))
            address = address_of(chosen.host, listening, OPEN)
            if chosen.mcp:
                at, how = f"http://{address}/mcp", "with a client of MCP over streamable HTTP"
            else:
                at, how = f"http://{address}", f"with OpenEnv's client, or to ws://{address}/ws"
            ready = f"ready: {at} serves {_served(chosen, len(tasks), limits)}; connect {how}"
            server = _server(chosen, offer, host, limits, partial(print, ready, flush=True))
            server.run(sockets=[listening])
    return 0


def _served(chosen: Namespace, tasks: int, limits: ServingLimits) -> str:
    return f"{chosen.environment} ({tasks} {chosen.split} tasks, {limits.sessions} sessions)"


def _server(
    chosen: Namespace,
    offer: SessionSettings,
    host: EnvironmentHost,
    limits: ServingLimits,
    ready: Callable[[], None],
) -> uvicorn.Server:
    about = about_of(chosen.environment)
    if not chosen.mcp:
        return server_of(make_app(offer, host, about, limits), limits, ready=ready)
    from skillpress.integrations.serving.mcp_server import http_app, tools_of

    prepared: Future[Episodes] = Future()
    prepared.set_result(Episodes(offer, host, limits))
    return server_of(http_app(tools_of(prepared, about), limits), limits, lifespan="on", ready=ready)


def _serve_here(chosen: Namespace, limits: ServingLimits) -> int:
    """Serve tools over this process's standard streams until they close."""
    from skillpress.integrations.serving.mcp_server import StandardStreams, tools_of

    wire = StandardStreams.take()  # before anything is started that might print
    params = playing_params(chosen.environment, chosen.params, chosen.set)
    prepared: Future[Episodes] = Future()

    def prepare() -> None:
        try:
            tasks = tasks_of(params, chosen.split)
            host = host_of(params.environment, limits.sessions)
            offer = SessionSettings(chosen.environment, TaskBook(tasks), reward_of(params))
            prepared.set_result(Episodes(offer, host, limits))
        except Exception as error:  # noqa: BLE001  said by every tool
            prepared.set_exception(error)
        else:
            said = f"ready: the standard streams serve {_served(chosen, len(tasks), limits)}"
            _LOG.info("%s; connect with the client that started this process", said)
        Event().wait()  # the environments' processes end with the thread that started them

    Thread(target=prepare, name="prepare", daemon=True).start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):  # the usual way to end it
            wire.serve(tools_of(prepared, about_of(chosen.environment)))
    finally:
        if prepared.done() and prepared.exception() is None:
            prepared.result().host.close()
    return 0


def reward_of(params: Params) -> StepReward:
    """A step's reward, as the agent computes it but without the response format's share."""
    reward = params.reward.make()
    measures = {name: weight for name, weight in reward.measures.items() if name != FORMAT_MEASURE}
    return replace(reward, measures=measures)


def about_of(environment: str) -> Metadata:
    """The server's description of itself, with the first line of the environment's module docstring."""
    part = ENVIRONMENTS.find(environment)
    assert part is not None, "the parser refuses unknown names"
    told = import_module(part.module).__doc__ or environment
    return Metadata(environment, told.splitlines()[0], __version__)


def _limits(chosen: Namespace) -> ServingLimits:
    """The server's limits from the options."""
    given = {field.name: getattr(chosen, field.name) for field in fields(ServingLimits)}
    for name, value in given.items():
        if value <= 0:
            raise UserError(f"--{name.replace('_', '-')}: is {value}; must be above 0")
    return ServingLimits(**given)


def _parser() -> CommandParser:
    parser = CommandParser(prog="skillpress serve", description=__doc__)
    add_environment(parser)
    add_parameter_options(parser, "ENVIRONMENT", "tasks.train=100")
    parser.add_argument(
        "--mcp",
        nargs="?",
        const="http",
        choices=("http", "stdio"),
        help="tools of the Model Context Protocol, over HTTP at /mcp, or over the standard streams",
    )
    parser.add_argument("--split", choices=SPLITS, default="train", help="whose tasks (default: train)")
    add_address(parser, "the interface; there is no password", PORT)
    for name, kind, what in (
        ("sessions", whole(1), "at once, each of one connection"),
        ("message_bytes", whole(1), "of one message to the server, at most"),
        ("messages_per_second", real(above=0), "of one session; who is faster waits"),
        ("idle_seconds", real(above=0), "that a session may say nothing"),
        ("request_seconds", real(above=0), "within which a request must have arrived whole"),
    ):
        default = getattr(ServingLimits(), name)
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, default=default, help=f"{what} (default: {default:g})"
        )
    return parser
