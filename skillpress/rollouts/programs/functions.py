"""Functions as programs: ``module:function`` is called, or awaited, in a worker process.

A worker serves many episodes at once, so that a client library is imported once and not for every episode. A
function is called as ``function(task, base_url=..., api_key=...)``; its return value, which JSON must be able
to say, is what it has printed. A worker that dies takes its episodes with it; they are ``lost``, so they
begin again in the next worker.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from skillpress.core.http_clients import loopback_kept_direct
from skillpress.rollouts.programs.launch import CRASHED, LOST, ProgramError
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import NO_TELEMETRY, Start
from skillpress.rollouts.sandbox.processes import waits
from skillpress.rollouts.workers.parent import die_with_parent

START_SECONDS = 600.0
"""How long a worker may take to import the function."""
STARTS = 10
"""How often a worker that is killed from outside while it imports is started, until that is an error."""


class Functions:
    """A ``Launcher`` of one function."""

    def __init__(self, function: str, processes: int, paths: tuple[Path, ...] = ()) -> None:
        """Args:
            function: ``module:function``.
            processes: number of workers.
            paths: folders that the function's module may be imported from.

        Raises:
            ProgramError: the function cannot be imported.
        """
        self._function, self._paths = function, paths
        self._workers: list[_Worker | None] = [None] * processes
        self._numbers = count()
        self._lock = threading.Lock()
        # A worker ends with the thread that has started it, and threads of episodes end before this object.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="starts functions")
        try:
            self._working(0)
        except ProgramError:
            self._starter.shutdown()
            raise

    def start(self, start: Start, ended: Callable[[Ended], None]) -> _Call:
        """See ``Launcher``."""
        with self._lock:
            loads = [len(worker.waiting) if worker and worker.alive else 0 for worker in self._workers]
            worker = self._working(loads.index(min(loads)))
        return worker.call(next(self._numbers), start, ended)

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            if worker is not None:
                worker.kill()
        self._starter.shutdown()

    def _working(self, place: int) -> _Worker:
        worker = self._workers[place]
        for _ in range(STARTS):
            if worker is not None and worker.alive:
                return worker
            starting = self._starter.submit(_Worker, self._function, self._paths)
            worker = self._workers[place] = starting.result()
        raise ProgramError(
            f"environment.run: {self._function}: {STARTS} workers were killed from outside while they "
            "imported it"
        )


class _Worker:
    """One process, with its open calls."""

    def __init__(self, function: str, paths: tuple[Path, ...]) -> None:
        self.waiting: dict[int, Callable[[Ended], None]] = {}
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "skillpress.rollouts.programs.function_worker",
                    str(theirs.fileno()),
                    function,
                    *map(str, paths),
                ],
                env={**os.environ, **loopback_kept_direct(), **NO_TELEMETRY},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )
        ours.settimeout(START_SECONDS)
        self._connection = ours
        self._lines = ours.makefile("rb")
        self._lock = threading.Lock()
        ready = self._first()
        self.alive = ready == b"ready\n"
        """False once it has died."""
        if not self.alive:
            died = self._died()
            self._disconnect()
            if not ready and died == -signal.SIGKILL:
                return
            told = ready.decode(errors="replace").strip() or "its worker ended while it was imported"
            raise ProgramError(f"environment.run: {function}: {told}")
        ours.settimeout(None)
        threading.Thread(target=self._hear, name="functions", daemon=True).start()

    def call(self, number: int, start: Start, ended: Callable[[Ended], None]) -> _Call:
        """Call the function."""
        with self._lock:
            lost = not self.alive
            if not lost:
                self.waiting[number] = ended
        if lost:
            ended(Ended(LOST))
        told = {
            "number": number,
            "task": dict(start.task),
            "base_url": f"{start.url}/v1",
            "api_key": start.key,
        }
        self._send(told | {"folder": str(start.folder)})
        return _Call(self, number, self.waits())

    def waits(self) -> dict[int, float]:
        """Seconds that each of its threads has waited for a processor."""
        return waits([self.process.pid])

    def stop(self, number: int) -> None:
        """Cancel a call."""
        self.waiting.pop(number, None)
        self._send({"number": number, "stop": True})

    def kill(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    def _first(self) -> bytes:
        """What it says first; nothing if it ends before."""
        try:
            return self._lines.readline()
        except TimeoutError:
            return f"its import takes longer than {START_SECONDS:g} seconds".encode()

    def _disconnect(self) -> None:
        self._lines.close()
        self._connection.close()

    def _died(self) -> int:
        """The code with which it ends, or is ended."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(1.0)
        self.kill()
        return 0

    def _send(self, message: dict[str, object]) -> None:
        line = json.dumps(message).encode() + b"\n"
        try:
            with self._lock:
                self._connection.sendall(line)
        except OSError:
            pass  # it has died, which the listening thread says

    def _hear(self) -> None:
        with suppress(ConnectionError):  # it was killed while something was sent to it
            for line in self._lines:
                said = json.loads(line)
                ended = self.waiting.pop(said["number"], None)
                if ended is not None:
                    ended(Ended(CRASHED if said["crashed"] else None, said["printed"]))
        with self._lock:
            self.alive = False
            lost, self.waiting = self.waiting, {}
        self.process.wait()
        self._disconnect()
        for ended in lost.values():
            ended(Ended(LOST))


@dataclass(frozen=True)
class _Call:
    worker: _Worker = field(repr=False)
    number: int
    before: Mapping[int, float]
    """What the worker's threads had waited for a processor when it began."""

    def stop(self) -> None:
        """See ``Running``. A function that is not awaited goes on until it asks the model again."""
        self.worker.stop(self.number)

    def waited(self) -> float:
        """See ``Running``: the longest wait of the worker's threads, in which all its calls share."""
        since = (now - self.before.get(thread, 0.0) for thread, now in self.worker.waits().items())
        return max(since, default=0.0)
