"""Options that several commands share: for parameters, for models behind a URL, and for servers."""

from __future__ import annotations

import logging
import socket
from argparse import ArgumentParser

from skillpress.core.arguments import real, whole
from skillpress.core.lab import overlay as overlay_file
from skillpress.core.web import is_loopback

_LOG = logging.getLogger(__name__)

RESPONSE_TOKENS = 256
"""Enough tokens for a judge's sentence of reasons and its verdict; a model that reasons first needs more."""


def add_parameter_options(parser: ArgumentParser, overlay: str, example: str) -> None:
    """Add ``--params``, which replaces ``overlay``, and ``--set``, whose help shows ``example``."""
    parser.add_argument("--params", type=overlay_file, action="append", default=[], metavar="OVERLAY",
                        help=f"in place of params/{overlay}.yaml; may be repeated")  # fmt: skip
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help=f"such as {example}; may be repeated")  # fmt: skip


def add_server_options(parser: ArgumentParser) -> None:
    """Add the options that ``players.SERVER_OPTIONS`` names."""
    parser.add_argument("--name", help="of the model at a URL (default: the one that is served there)")
    parser.add_argument(
        "--key-variable",
        metavar="VARIABLE",
        help="environment variable with the key for a URL (default: no key is sent)",
    )
    parser.add_argument("--deadline", type=real(above=0), metavar="SECONDS",
                        help="for one answer of a URL, all attempts together (default 600)")  # fmt: skip
    parser.add_argument(
        "--omit",
        metavar="NAME,NAME",
        help="sampling parameters that a URL is not sent, as seed,top_p (default: those that it refuses)",
    )
    parser.add_argument(
        "--body",
        metavar="JSON",
        help='further fields of requests to a URL, as \'{"reasoning_effort": "low"}\'',
    )
    parser.add_argument("--stream", action="store_true", default=None,
                        help="ask a URL for streams (for servers that give no other answers)")  # fmt: skip


def add_judge(parser: ArgumentParser) -> None:
    """Add the options that choose and configure the judge."""
    parser.add_argument("--model", required=True, metavar="FOLDER|NAME|URL", help="who judges")
    add_parameter_options(parser, "paper_notebook_qa", "environment.max_answer_words=5")
    parser.add_argument("--max-new-tokens", type=whole(1), default=RESPONSE_TOKENS, metavar="N",
                        help=f"of a verdict at most (default {RESPONSE_TOKENS})")  # fmt: skip
    add_server_options(parser)


def add_address(parser: ArgumentParser, interface: str, port: int) -> None:
    """Add ``--host``, which this says of the interface, and ``--port``."""
    parser.add_argument("--host", default="127.0.0.1", help=f"{interface} (default: loopback)")
    parser.add_argument(
        "--port", type=whole(0, 65535), default=port, help=f"0 takes a free one (default: {port})"
    )


def address_of(host: str, listening: socket.socket, warning: str) -> str:
    """``host:port`` of an open port; the warning is given if other machines reach it."""
    if not is_loopback(host):
        _LOG.warning("warning: --host %s: %s", host, warning)
    return f"{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
