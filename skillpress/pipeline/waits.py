"""Lines that say what a command or a stage waits for, once it has waited for some seconds."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from skillpress.core.waiting import heard

_LOG = logging.getLogger(__name__)

FIRST_SECONDS, SECONDS = 5.0, 30.0
"""A wait is reported after the first number of seconds, then repeatedly after the second."""
LOOK_SECONDS = 0.5


class Waits:
    """Says within its context what the process waits for, in lines such as ``train_policy: importing torch (5
    s so far)``. If contexts are nested, only the outermost prints.
    """

    _speaks: Waits | None = None

    def __init__(self, name: str) -> None:
        self._name, self._what = name, ""
        self._since = self._next = time.monotonic()
        self._over = threading.Event()
        self._hears = heard(self._hear)

    def __enter__(self) -> Waits:
        if Waits._speaks is None:
            Waits._speaks = self
            self._hears.__enter__()
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if Waits._speaks is self:
            Waits._speaks = None
            self._over.set()
            self._hears.__exit__(kind, error, trace)

    def _hear(self, what: str) -> None:
        self._since = time.monotonic()
        self._next, self._what = self._since + FIRST_SECONDS, what

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Print what the process waits for, if a line is due."""
        if self._what and now >= self._next:
            self._next = now + SECONDS
            _LOG.info("%s: %s (%.0f s so far)", self._name, self._what, now - self._since)
