"""Kills a real experiment at random times, at any level of its processes, and starts it again.

A chain is a number of kills. After each kill the experiment starts again from its files, and the last start
runs to the end. A seed decides which process dies, and when.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from random import Random

import psutil

from tests.support.clone import Clone

LEVELS = ("tree", "make", "flow", "server", "stage", "rank", "worker", "recorder")
"""Kinds of processes to kill; DVC runs in the process of ``flow``."""
SURVIVED = ("worker", "stage", "rank", "recorder")
"""A worker is replaced and a stage is tried again, so the run continues."""
END_SECONDS = 120.0
"""All processes of a run must be gone this long after its end, or after the end of the process that started
them."""
RUN_SECONDS = 900.0
"""The most seconds for a whole run, and until a run notices, at the end of a stage, that its server is
gone."""
MARK = "SKILLPRESS_KILL_TEST"
"""Environment variable of all processes that a run starts, whichever process is their parent now."""


class Killed:
    """A clone whose runs are killed."""

    def __init__(self, clone: Clone, seed: int) -> None:
        self.clone, self.random = clone, Random(seed)
        self.kills: Counter[str] = Counter()
        self._mark = uuid.uuid4().hex
        self._log = clone.folder.parent / "run.log"

    def undisturbed(self) -> float:
        """Run to the end; returns its seconds."""
        started = time.monotonic()
        self._finish(self._start())
        return time.monotonic() - started

    def chain(self, kills: int, longest: float) -> None:
        """Kill ``kills`` runs, each within ``longest`` seconds of its start, and let the next one end."""
        run = self._start()
        for _ in range(kills):
            try:
                run.wait(self.random.uniform(0.0, longest))
            except subprocess.TimeoutExpired:
                pass
            else:
                if run.returncode == 0:
                    return self._finish(run)  # this one was fast enough
                run = self._start()  # one stage was killed more often than it is tried
            level = self._kill(run)
            if level not in SURVIVED:
                self._gone(run, RUN_SECONDS if level == "server" else END_SECONDS)
                run = self._start()
        return self._finish(run)

    def wipe(self) -> None:
        """Remove all outputs of runs, as in a fresh clone."""
        for made in ("data", "models", "results", "checkpoints", ".dvc/cache", ".dvc/tmp"):
            shutil.rmtree(self.clone.folder / made, ignore_errors=True)
        (self.clone.folder / "dvc.lock").unlink(missing_ok=True)

    def processes(self) -> list[psutil.Process]:
        """Every living process that a run has started."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        """Start ``make run`` without its set-up, since this environment has everything."""
        with self._log.open("ab") as log:
            return subprocess.Popen(
                ["make", "run", f"PYTHON={sys.executable}", "-o", "setup"],
                cwd=self.clone.folder, env=self.clone.environment | {MARK: self._mark},
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _kill(self, run: subprocess.Popen[bytes]) -> str:
        """Kill one level of the running processes; returns its name."""
        there: dict[str, list[psutil.Process]] = {}
        for process in self.processes():
            try:
                there.setdefault(level_of(process, run.pid), []).append(process)
            except psutil.Error:
                continue
        there.pop("other", None)
        chosen = self.random.choice([name for name in LEVELS if name == "tree" or name in there])
        if chosen == "tree":
            os.killpg(run.pid, signal.SIGKILL)
        else:
            self.random.choice(there[chosen]).kill()
        self.kills[chosen] += 1
        with self._log.open("a") as log:
            print(f"--- killed: {chosen} ({self.kills.total()})", file=log)
        return chosen

    def _gone(self, run: subprocess.Popen[bytes], within: float = END_SECONDS) -> None:
        run.wait(within)
        deadline = time.monotonic() + END_SECONDS
        while left := self.processes():
            assert time.monotonic() < deadline, (
                f"{[p.cmdline() for p in left]} outlived the run\n{self.said()}"
            )
            time.sleep(0.1)

    def _finish(self, run: subprocess.Popen[bytes]) -> None:
        assert run.wait(RUN_SECONDS) == 0, self.said()
        self._gone(run)

    def said(self) -> str:
        """The end of the runs' output."""
        return self._log.read_text(errors="replace")[-6000:]


def level_of(process: psutil.Process, make: int) -> str:
    """The level of a process in a run of several ranks; workers, if any, belong to ranks."""
    if process.pid == make:
        return "make"
    command = " ".join(process.cmdline())
    if "flows.run" in command:
        return "flow"
    if "flows.own_server" in command:
        return "server"
    if "skillpress.pipeline.tracking.recorder" in command:
        return "recorder"
    if "multiprocessing.spawn" in command:
        return "rank" if stage_of(process.parent()) else "worker"
    return "stage" if stage_of(process) else "other"


def stage_of(process: psutil.Process | None) -> str:
    """The name of the stage that a process runs, or an empty text."""
    command = process.cmdline() if process else []
    return command[command.index("tasks") + 1] if "tasks" in command[:-1] else ""


def outputs(folder: Path) -> dict[str, bytes]:
    """Path to content of all files that a run leaves, including hidden ones, without results/, which has
    times."""
    made = [path for name in ("data", "models", "checkpoints") for path in (folder / name).rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in made if path.is_file()}
