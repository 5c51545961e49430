"""What a process waits for before it can show progress: imports, a compiler, an engine that starts.

Code that waits says so with :func:`waiting`; whatever shows progress listens with :func:`heard`. Without a
listener nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]
"""Receives what the process waits for now, such as ``importing torch``; empty if it does not wait."""

_listeners: list[Listener] = []
_waits: list[str] = []
"""The current waits; the innermost comes last."""


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """The process waits for this within the block. ``what`` is a phrase such as ``importing torch``."""
    begin(what)
    try:
        yield
    finally:
        end()


def begin(what: str) -> None:
    """The beginning of :func:`waiting`, for callers that cannot use a block."""
    _waits.append(what)
    tell(what)


def end() -> None:
    """The end of the innermost wait."""
    _waits.pop()
    tell(_waits[-1] if _waits else "")


def tell(what: str) -> None:
    """Tell all listeners of this process, also about a wait of another process."""
    for listener in tuple(_listeners):
        listener(what)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """The listener hears each beginning and end of a wait within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
