"""Progress with rate and remaining time: a bar on a terminal, occasional plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Counts towards ``total``; use as a context manager and call it with the count so far."""

    def __init__(
        self, name: str, total: int, unit: str = "it", check: Callable[[], None] = lambda: None
    ) -> None:
        """``check`` is called every few seconds; it raises if the work cannot usefully continue."""
        self.name, self.total, self.unit, self._check = name, total, unit, check
        self.count = 0
        self._first: tuple[int, float] | None = None
        self._started = time.monotonic()
        self._printed = self._started
        self._bar = tqdm(desc=name, total=total, unit=unit) if sys.stderr.isatty() else None

    def __call__(self, count: int, **values: float) -> None:
        """``count`` of ``total`` is done; ``values`` are shown beside it."""
        text = " ".join(f"{name}={value:.3g}" for name, value in values.items())
        if self._first is None:  # the rate leaves out what came before: an earlier run's work, a first batch
            self._first = count, time.monotonic()
        self.count = count
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(count - self._bar.n)
        if time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._check()
            self._print(text)

    def more(self, count: int) -> None:
        """Add this many to the count."""
        self(self.count + count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self.count:
            self._print("")

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
        print(line, file=sys.stderr, flush=True)
