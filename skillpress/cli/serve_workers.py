"""``skillpress serve-workers``: run an experiment's environments for a trainer on another machine.

    SKILLPRESS_WORKERS_KEY=... skillpress serve-workers --environment notebook_qa --host 10.0.0.7 --slots 32

The trainer needs the same key in the same variable and this machine in params.yaml:

    workers:
      urls: [http://10.0.0.7:8700]

The environment's parameters, its data and the code must be the same on both; otherwise the trainer says what
differs. docs/scaling.md describes what happens when machines are lost.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial

from skillpress.cli.evaluations.options import add_address, add_parameter_options, address_of
from skillpress.cli.parameter_options import add_environment, playing_params
from skillpress.core.arguments import CommandParser, real, whole
from skillpress.core.errors import UserError
from skillpress.environments.played import played_by
from skillpress.environments.section import EnvironmentSection
from skillpress.integrations.serving import ServingLimits, host_of, listen, server_of
from skillpress.integrations.serving.host import EnvironmentHost
from skillpress.integrations.serving.workers import slots_app
from skillpress.rollouts.remote.slot import KEY_VARIABLE, MESSAGE_BYTES, Offer, key_of_workers
from skillpress.rollouts.workers import cores

PORT = 8700
PLAIN = "the key and all episodes travel unencrypted; only a network that you trust may carry them"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    key = key_of_workers()
    del os.environ[KEY_VARIABLE]  # no environment's process inherits it
    section = playing_params(chosen.environment, chosen.params, chosen.set).environment
    if section.offers("make_agent"):
        raise UserError(f"--environment: is {chosen.environment!r}, whose actions are not texts")
    with listen(chosen.host, chosen.port) as listening:
        host = host_of(section, chosen.slots)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with closing(host), suppress(KeyboardInterrupt):  # the usual way to end it
            _serve(chosen, section, host, key, listening)
    return 0


def _serve(
    chosen: Namespace, section: EnvironmentSection, host: EnvironmentHost, key: str, listening: socket.socket
) -> None:
    offer = Offer(
        played=played_by(section),
        slots=chosen.slots,
        seconds=host.seconds,
        machine=f"{socket.gethostname()}, process {os.getpid()}",
        log=_log(),
    )
    url = f"http://{address_of(chosen.host, listening, PLAIN)}"
    ready = (
        f"ready: {url} offers {chosen.slots} slots of {chosen.environment} to the workers.urls of a trainer"
    )
    limits = ServingLimits(sessions=chosen.slots, message_bytes=MESSAGE_BYTES)
    app = slots_app(offer, host, key, chosen.idle_seconds)
    server_of(app, limits, ready=partial(print, ready, flush=True)).run(sockets=[listening])


def _log() -> str:
    """The destination of this process's messages: the file behind standard error, or just standard error."""
    try:
        if stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode):
            return os.readlink(f"/proc/self/fd/{sys.stderr.fileno()}")
    except OSError:
        pass  # no such folder on this system
    return "its standard error"


def _parser() -> CommandParser:
    parser = CommandParser(prog="skillpress serve-workers", description=__doc__)
    add_environment(parser)
    add_parameter_options(parser, "ENVIRONMENT", "environment.max_steps=20")
    parser.add_argument(
        "--slots",
        type=whole(1),
        default=2 * cores(),
        help=f"episodes at once (default: two for each core, here {2 * cores()})",
    )
    add_address(parser, "address of this machine to listen on", PORT)
    parser.add_argument(
        "--idle-seconds",
        type=real(above=0),
        default=1800.0,
        help="a slot that nothing was asked of for so long becomes free (default: 1800)",
    )
    return parser
