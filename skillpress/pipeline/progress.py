"""Progress with rate and remaining time: a bar on a terminal, occasional plain lines in a log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from tqdm import tqdm

from skillpress.core.waiting import heard
from skillpress.pipeline.waits import Waits

_LOG = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 5.0


class StageProgress:
    """Counts towards ``total``; use as a context manager and call it with the count so far. Before the first
    count, it says what the process waits for.
    """

    def __init__(
        self,
        name: str,
        total: int,
        unit: str = "it",
        check: Callable[[], None] = lambda: None,
        whole: Callable[[float | None], str] = lambda rest: "",
    ) -> None:
        """
        Args:
            check: is called every few seconds; it raises if the work cannot usefully continue.
            whole: from the seconds that this count still needs (None if unknown) to words about the run.
        """
        self.name, self.total, self.unit, self._check, self._whole = name, total, unit, check, whole
        self.count = 0
        self._first: tuple[int, float] | None = None
        self._started = time.monotonic()
        self._printed = self._started
        self._bar: tqdm[Any] | None = None
        if sys.stderr.isatty() and _LOG.isEnabledFor(logging.INFO):
            self._bar = tqdm(desc=name, total=total, unit=unit)
        self._open = ExitStack()

    def __call__(self, count: int, **values: float) -> None:
        """Report that ``count`` of ``total`` is done; ``values`` are shown next to it."""
        if self._first is None:  # the rate leaves out what came before: an earlier run's work, a first batch
            self._first = count, time.monotonic()
        self.count = count
        text = " ".join(f"{name}={value:.3g}" for name, value in values.items())
        text = ", ".join(filter(None, (text, self._whole(self._rest()))))
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(count - self._bar.n)
        if time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._check()
            self._print(text)

    def more(self, count: int) -> None:
        """Add this many to the count."""
        self(self.count + count)

    def __enter__(self) -> StageProgress:
        self._open.enter_context(Waits(self.name))
        self._open.enter_context(heard(self._wait))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        if self._bar is not None:
            self._bar.close()
        elif self.count:
            self._print("")

    def _wait(self, what: str) -> None:
        """Show a wait in the bar of a terminal; in a log it has a line of its own."""
        if self._bar is not None:
            self._bar.set_postfix_str(what)

    def _rest(self) -> float | None:
        """Remaining seconds at the rate so far; None if no rate is known."""
        first, since = self._first or (0, self._started)
        seconds, done = time.monotonic() - since, self.count - first
        return (self.total - self.count) * seconds / done if done else None

    def _print(self, text: str) -> None:
        """Print a line in a log; on a terminal the bar shows itself."""
        self._printed = time.monotonic()
        if self._bar is not None:
            return
        first, since = self._first or (0, self._started)
        seconds = self._printed - since
        line = tqdm.format_meter(
            self.count,
            self.total,
            self._printed - self._started,
            prefix=self.name,
            unit=self.unit,
            rate=(self.count - first) / seconds if seconds else None,
            initial=first,
            postfix=text,
            ncols=0,
        )
        _LOG.info("%s", line)
