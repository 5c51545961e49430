"""Experiments beside each other, told to the user from the first one's start to the last one's end.

What an experiment prints goes to a log of its own. So that a console does not stand still for hours, the last
line of every running log is repeated now and then: it names the stage and how far it is.
"""

from __future__ import annotations

import time
from pathlib import Path

from prefect.futures import PrefectFuture, wait

from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.forecast import in_words

FIRST_SECONDS, SECONDS = 15.0, 60.0
"""From the start to the first look at the logs, and from one look to the next."""
WAIT_SECONDS = 2.0
"""An experiment that has ended waits at most so long for the next one to begin."""
WIDTH = 100
"""Characters of a log's line that are shown."""


def log_of(variant: Variant) -> Path:
    """Where a variant's process here prints to."""
    return ROOT / FOLDER / f"{variant.name}.log"


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


class Following:
    """Prints what begins, goes on and ends."""

    def __init__(self, total: int, at_once: int, here: bool) -> None:
        """
        Args:
            here: whether the experiments run on this machine, where their logs are.
        """
        self._total, self._here, self._done = total, here, 0
        self._running: dict[PrefectFuture[FinishedRun], tuple[Variant, float]] = {}
        self._next = time.monotonic() + FIRST_SECONDS
        self._say(f"{total} experiments, {min(at_once, total)} at once")

    def begins(self, variant: Variant, future: PrefectFuture[FinishedRun]) -> None:
        """One more runs."""
        self._running[future] = variant, time.monotonic()
        where = f"; its log is {log_of(variant).relative_to(ROOT)}" if self._here else ""
        self._say(f"{variant.name} starts{where}")

    def until_fewer_than(self, many: int) -> None:
        """Return when so few are running."""
        while len(self._running) >= many:
            ended, _ = wait(list(self._running), timeout=WAIT_SECONDS)  # for all of them, that is
            for future in ended:
                future.wait()  # its state is final only then; the server may still say that it runs
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
            at = tail(log, 1).strip()[-WIDTH:] if self._here and log.is_file() else ""
            self._say(f"{variant.name} runs for {in_words(time.monotonic() - began)}: {at or 'no line yet'}")

    @staticmethod
    def _say(line: str) -> None:
        print(f"ablation: {line}", flush=True)
