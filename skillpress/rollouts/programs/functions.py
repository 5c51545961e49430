"""Functions as programs: ``module:function`` is called, or awaited, in a worker process.

A worker serves many episodes at once, so that a client library is imported once and not for every episode. A
function is called as ``function(task, base_url=..., api_key=...)``; its return value, which must be a JSON
value, counts as its output. If a worker dies, its episodes are ``lost``, so they begin again in the next
worker. Its interpreter may be that of another virtual environment. Isolated workers share the episodes'
folders, and each has a home and limits of its own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from skillpress.core.http_clients import loopback_kept_direct
from skillpress.rollouts.programs import function_worker
from skillpress.rollouts.programs.isolated import HOME, Isolated
from skillpress.rollouts.programs.isolated_process import IsolatedProcess
from skillpress.rollouts.programs.launch import CRASHED, LOST, ProgramError, copy_files, tail, why_ended
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import NO_TELEMETRY, Start
from skillpress.rollouts.sandbox.isolation import VARIABLES, Bind
from skillpress.rollouts.sandbox.processes import children_of_all, tree, waits
from skillpress.rollouts.sandbox.spawner import spawner
from skillpress.rollouts.workers.parent import die_with_parent

START_SECONDS = 600.0
"""How long a worker may take to import the function."""
STARTS = 10
"""How often a worker is started that is killed from outside during the import, before that is an error."""
WORKER = Path(function_worker.__file__)
EPISODES, WORKER_INSIDE = "/episodes", f"/run/{WORKER.name}"
"""Paths inside the isolation of the episodes' folders, and of the workers' script."""
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
"""Variables that tell our interpreter where its packages are; other interpreters do not get them."""


@dataclass(frozen=True)
class Apart:
    """The isolation of workers."""

    isolated: Isolated
    """The isolation, whose command is the interpreter."""
    files: Mapping[str, Path]
    """Maps names in each worker's home to the files and folders that are copied there."""
    episodes: Path
    """The folder that contains the episodes' folders."""


@dataclass(frozen=True)
class Called:
    """The function that workers call, and where they find it."""

    function: str
    """``module:function``."""
    paths: Sequence[Path] = ()
    """Folders that the function's module may be imported from."""
    python: str = sys.executable
    """The workers' interpreter."""
    apart: Apart | None = None
    """None for no isolation."""

    def start(self, descriptor: int) -> subprocess.Popen[bytes] | IsolatedProcess:
        """Start a worker that reads calls from this descriptor."""
        told = [str(descriptor), self.function]
        if self.apart is not None:
            return self._isolated(self.apart, told, descriptor)
        ours = () if self.python == sys.executable else OURS
        variables = {name: value for name, value in os.environ.items() if name not in ours}
        return subprocess.Popen(
            [self.python, str(WORKER), *told, *map(str, self.paths)],
            env={**variables, **loopback_kept_direct(), **NO_TELEMETRY},
            pass_fds=(descriptor,),
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )

    def _isolated(self, apart: Apart, told: Sequence[str], descriptor: int) -> IsolatedProcess:
        root = Path(mkdtemp(dir=apart.episodes.parent))
        root.chmod(0o711)  # the user of isolated programs passes through, and lists nothing
        (root / "home").mkdir(mode=0o700)
        copy_files(apart.files, root / "home")
        path = f"{Path(self.python).parent}:{VARIABLES['PATH']}"
        binds = [Bind(WORKER_INSIDE, WORKER), Bind(EPISODES, apart.episodes, writable=True)]
        return apart.isolated.start(
            [WORKER_INSIDE, *told, HOME],
            root / "home",
            {"PATH": path, **NO_TELEMETRY},
            root / "printed.txt",
            binds=binds,
            descriptors=(descriptor,),
        )


class Functions:
    """A ``Launcher`` of one function."""

    def __init__(self, called: Called, processes: int) -> None:
        """Args:
            processes: number of workers.

        Raises:
            ProgramError: the function cannot be imported, or the interpreter cannot be started.
        """
        self._called = called
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
            starting = self._starter.submit(_Worker, self._called)
            worker = self._workers[place] = starting.result()
        raise ProgramError(
            f"environment.run: {self._called.function}: {STARTS} workers were killed from outside while they "
            "imported it"
        )


class _Worker:
    """One process, with its open calls."""

    def __init__(self, called: Called) -> None:
        self.waiting: dict[int, Callable[[Ended], None]] = {}
        self._apart = called.apart
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._begun = called.start(theirs.fileno())
            except OSError as error:
                ours.close()
                raise ProgramError(f"environment.python: {called.python}: {error}") from error
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
            if not ready and why_ended(died) == LOST:
                return
            told = ready.decode(errors="replace").strip() or "its worker ended while it was imported"
            raise ProgramError(f"environment.run: {called.function}: {told}{self._printed()}")
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
        folder = start.folder
        if self._apart is not None:
            spawner().writable(folder)
            folder = Path(EPISODES) / folder.relative_to(self._apart.episodes)
        self._send(told | {"folder": str(folder)})
        return _Call(self, number, self.waits())

    def waits(self) -> dict[int, float]:
        """Seconds that each of its threads has waited for a processor."""
        pid = self._begun.pid
        return waits([pid] if self._apart is None else tree(pid, children_of_all()))

    def stop(self, number: int) -> None:
        """Cancel a call."""
        self.waiting.pop(number, None)
        self._send({"number": number, "stop": True})

    def kill(self) -> None:
        """End the process."""
        if isinstance(self._begun, IsolatedProcess):
            self._begun.end()
        else:
            self._begun.kill()
            self._begun.wait()

    def _first(self) -> bytes:
        """The worker's first message; empty if it ends before."""
        try:
            return self._lines.readline()
        except TimeoutError:
            return f"its import takes longer than {START_SECONDS:g} seconds".encode()

    def _disconnect(self) -> None:
        self._lines.close()
        self._connection.close()

    def _died(self) -> int:
        """The exit code with which the worker ends, or is ended."""
        with suppress(subprocess.TimeoutExpired):
            return self._wait(1.0)
        self.kill()
        return 0

    def _wait(self, seconds: float | None = None) -> int:
        return (self._begun.process if isinstance(self._begun, IsolatedProcess) else self._begun).wait(
            seconds
        )

    def _printed(self) -> str:
        """The output of an isolated worker, and the limit that it exceeded."""
        if not isinstance(self._begun, IsolatedProcess):
            return ""
        return f"\n{tail(self._begun.printed)}{self._begun.exceeded}"

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
        self._wait()
        self._disconnect()
        for ended in lost.values():
            ended(Ended(LOST, self._printed()))


@dataclass(frozen=True)
class _Call:
    worker: _Worker = field(repr=False)
    number: int
    before: Mapping[int, float]
    """How long the worker's threads had waited for a processor when the call began."""

    def stop(self) -> None:
        """See ``Running``. A function that is not awaited continues until it asks the model again."""
        self.worker.stop(self.number)

    def waited(self) -> float:
        """See ``Running``: the longest wait of the worker's threads, which all its calls share."""
        since = (now - self.before.get(thread, 0.0) for thread, now in self.worker.waits().items())
        return max(since, default=0.0)
