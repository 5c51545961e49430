"""Ctrl-C in a flow stops its processes, names in one line the results that are kept, and ends the program.

A flow's own way out would take minutes. Prefect's server, a process of the same terminal, has received the
Ctrl-C too. Each of the flow's last messages to it would fail with a traceback, and threads would try their
tasks again.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from flows.children import stop_all
from skillpress.pipeline import exit_codes

KEPT = "finished stages and checkpoints are kept"
"""The words for the results that an interrupted experiment keeps."""


@contextmanager
def interruptible(name: str, kept: str) -> Iterator[None]:
    """On Ctrl-C in the block, end this process with one line. Its context managers are left before.

    Use it in the function of a flow, and in ``main`` around the flow.

    Args:
        name: of the flow.
        kept: a clause about the results that are kept, such as ``finished stages are kept in workspaces/``.
            The text of a ``KeyboardInterrupt`` is printed before it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _quietly)
    try:
        yield
    except KeyboardInterrupt as stopped:
        stop_all()
        done = f"{stopped}; " if str(stopped) else ""
        exit_codes.say(f"{name}: interrupted; {done}{kept}; run the same command again to go on")
        exit_codes.leave(exit_codes.INTERRUPTED)
    finally:
        if handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, handler)


def _quietly(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, without what threads log about processes that end; a second Ctrl-C does
    not disturb the ending."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    signal.default_int_handler(number, frame)
