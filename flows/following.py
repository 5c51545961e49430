"""Progress messages about experiments that run at once, from the first one's start to the last one's end.

The output of an experiment goes to its own log. So that the console does not stay silent for hours, the last
line of every running log is repeated from time to time: it names the stage and its progress.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from prefect.futures import PrefectFuture, wait

from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.forecast import in_words

_LOG = logging.getLogger("skillpress.flows")

FIRST_SECONDS, SECONDS = 15.0, 60.0
"""Seconds from the start to the first look at the logs, and between looks."""
WAIT_SECONDS = 2.0
"""The longest wait in seconds from the end of one experiment to the start of the next."""
WIDTH = 100
"""The most characters of a log line that are shown."""


def log_of(variant: Variant) -> Path:
    """The log of a variant's process."""
    return ROOT / FOLDER / f"{variant.name}.log"


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


class Following:
    """Prints when experiments begin, continue and end."""

    def __init__(self, total: int, at_once: int) -> None:
        self._total, self._done = total, 0
        self._running: dict[PrefectFuture[FinishedRun], tuple[Variant, float]] = {}
        self._next = time.monotonic() + FIRST_SECONDS
        self._say(f"{total} experiments, {min(at_once, total)} at once")

    @property
    def progress(self) -> str:
        """A clause such as ``2 of 6 experiments are done``."""
        return f"{self._done} of {self._total} experiments are done"

    def begins(self, variant: Variant, future: PrefectFuture[FinishedRun]) -> None:
        """Announce a new running experiment."""
        self._running[future] = variant, time.monotonic()
        self._say(f"{variant.name} starts; its log is {log_of(variant).relative_to(ROOT)}")

    def until_fewer_than(self, many: int) -> None:
        """Return when fewer than this many are running."""
        while len(self._running) >= many:
            ended, _ = wait(list(self._running), timeout=WAIT_SECONDS)  # a wait for all of them
            for future in ended:
                future.wait()  # only this makes its state final; the server may still report it as running
                variant, began = self._running.pop(future)
                self._done += 1
                how = "is done" if future.state.is_completed() else "failed"
                seconds = in_words(time.monotonic() - began)
                self._say(f"{variant.name} {how} after {seconds} ({self._done} of {self._total})")
            if time.monotonic() >= self._next:
                self._next = time.monotonic() + SECONDS
                self._look()

    def _look(self) -> None:
        for variant, began in self._running.values():
            log = log_of(variant)
            at = tail(log, 1).strip()[-WIDTH:] if log.is_file() else ""
            self._say(f"{variant.name} runs for {in_words(time.monotonic() - began)}: {at or 'no line yet'}")

    @staticmethod
    def _say(line: str) -> None:
        _LOG.info("ablation: %s", line)
