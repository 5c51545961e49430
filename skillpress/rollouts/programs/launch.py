"""Run a program: a command in its own process, or a function in a worker.

A command ends with its episode, and so does everything below it: its process group is killed, and then every
process that has inherited the episode's mark in its environment, whatever group or session it has moved to.
Isolated programs live in a process namespace, whose processes end together, and the sandboxes' watchdog ends
programs that exceed their limits. A process that is killed from outside has *not* failed: it is ``lost``, and
the episode starts it again. So is a program whose forwarder finds no endpoint.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from skillpress.core.errors import UserError
from skillpress.core.http_clients import loopback_kept_direct
from skillpress.rollouts.programs.forwarder import NO_ENDPOINT
from skillpress.rollouts.programs.isolated import HOME, LARGEST_FILE, Isolated
from skillpress.rollouts.programs.isolated_process import IsolatedProcess, opened
from skillpress.rollouts.programs.mounting import MountedSkills
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.setting import INHERITED, AgentSetting, filled
from skillpress.rollouts.programs.start import MARK, Start, namespace
from skillpress.rollouts.sandbox.isolation import Bind
from skillpress.rollouts.sandbox.process import END_SECONDS
from skillpress.rollouts.sandbox.processes import children_of_all, start_ticks, tree, waits
from skillpress.rollouts.sandbox.watchdog import watchdog
from skillpress.rollouts.workers.parent import die_with_parent
from skillpress.rollouts.workers.ranks import SIGNALLED, exit_in_words

PRINTED = 64 << 10
"""Maximum number of characters kept of a program's output, counted from its end."""
LOST, CRASHED, OVER_LIMITS = "lost", "crashed", "over_limits"


class ProgramError(UserError):
    """A program cannot be started at all."""


class Running(Protocol):
    """A running program."""

    def stop(self) -> None:
        """End the program and all processes that it started; return when none is left."""
        ...

    def waited(self) -> float:
        """Seconds since its start in which it waited for a processor of the busy machine."""
        ...


class Launcher(Protocol):
    """Starts programs."""

    def start(self, start: Start, ended: Callable[[Ended], None]) -> Running:
        """Start one.

        Args:
            ended: called once, from another thread, when it has ended.

        Raises:
            ProgramError: it cannot be started.
        """
        ...

    def close(self) -> None:
        """End all programs."""
        ...


class Commands:
    """A ``Launcher`` of commands."""

    def __init__(
        self,
        command: Sequence[str],
        isolated: Isolated | None = None,
        files: Mapping[str, Path] | None = None,
        skills: MountedSkills | None = None,
        setting: AgentSetting | None = None,
    ) -> None:
        """Args:
        command: the program and its arguments. ``{folder}`` means the episode's folder.
        isolated: None for no isolation.
        files: maps names in every episode's folder to the files and folders that are copied there; None for
            none.
        skills: the skills that ``Start.skills`` selects from; None if there are none.
        setting: variables and files of a coding agent; None for other commands."""
        self._command, self._isolated, self._files = list(command), isolated, dict(files or {})
        self._skills, self._setting = skills, setting

    def start(self, start: Start, ended: Callable[[Ended], None]) -> Running:
        """See ``Launcher``."""
        copy_files(self._files, start.folder)
        home = str(start.folder) if self._isolated is None else HOME
        variables, command = start.variables(), [part.replace("{folder}", home) for part in self._command]
        if self._setting is not None:
            fills = start.fills(home)
            variables |= self._setting.prepare(start.folder, fills)
            command = [filled(part, fills) for part in self._command]
        running = _Command(self._begin(command, start, variables), start)
        threading.Thread(target=running.watch, args=(ended,), name="program", daemon=True).start()
        return running

    def close(self) -> None:
        """Do nothing: every process ends with its episode."""

    def _begin(
        self, command: Sequence[str], start: Start, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | IsolatedProcess:
        try:
            if self._isolated is not None:
                skills = self._skills.binds(start.skills, start.folder) if self._skills else ()
                binds = [Bind(f"{HOME}/{place}", path) for place, path in skills]
                return self._isolated.start(command[1:], start.folder, variables, start.printed, binds=binds)
            if self._skills is not None:
                self._skills.copy(start.skills, start.folder)
            with opened(start.printed) as printed:
                return self._start(command, start.folder, variables, printed)
        except OSError as error:
            raise ProgramError(f"environment.run: {self._command[0]!r} cannot be started: {error}") from error

    def _start(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], printed: int
    ) -> subprocess.Popen[bytes]:
        mine = dict(os.environ)
        if self._setting is not None:
            mine = {name: mine[name] for name in INHERITED if name in mine}
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**mine, **loopback_kept_direct(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_before,
        )


def copy_files(files: Mapping[str, Path], folder: Path) -> None:
    """Copy files and folders into a folder; a program that begins again finds them unchanged."""
    for name, source in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)
            shutil.copymode(source, target)


@dataclass(eq=False)
class _Command:
    """A ``Running``."""

    begun: subprocess.Popen[bytes] | IsolatedProcess
    start: Start
    since: int = field(init=False)
    """When it was started, as ``processes.start_ticks`` says."""

    def __post_init__(self) -> None:
        self.since = start_ticks(self.pid)

    @property
    def pid(self) -> int:
        """The number of its outermost process."""
        return self.begun.pid

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """Its outermost process."""
        return self.begun.process if isinstance(self.begun, IsolatedProcess) else self.begun

    def watch(self, ended: Callable[[Ended], None]) -> None:
        """Wait for the end, and leave the process to ``stop``, which kills by its number. Until then no other
        process gets that number."""
        code, exceeded = self._code(), ""
        if isinstance(self.begun, IsolatedProcess):
            watchdog().forget(self.begun)
            exceeded = self.begun.exceeded
        printed = tail(self.start.printed)
        if exceeded:
            ended(Ended(OVER_LIMITS, f"{printed}\n{exceeded}"))
        elif (why := why_ended(code)) == CRASHED:
            ended(Ended(why, f"{printed}\nThe program ended with {exit_in_words(code)}."))
        else:
            ended(Ended(why, printed))

    def _code(self) -> int:
        """Its exit code when it has ended, as ``subprocess`` defines it."""
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # ``stop`` was faster
            return self.process.wait()
        assert ended is not None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def stop(self) -> None:
        """See ``Running``."""
        if isinstance(self.begun, IsolatedProcess):
            self.begun.end()
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        end_marked(self.start.variables()[MARK], self.since)
        self.process.wait(END_SECONDS)

    def waited(self) -> float:
        """See ``Running``: the longest wait of the threads that still run."""
        return max(waits(tree(self.pid, children_of_all())).values(), default=0.0)


def why_ended(code: int) -> str | None:
    """The meaning of an exit code, in a word; None if nothing was wrong."""
    if code in (-signal.SIGKILL, SIGNALLED + signal.SIGKILL, NO_ENDPOINT):
        return LOST
    return None if code == 0 else CRASHED


def _before() -> None:
    """Make the child end with the thread that started it, and limit its files."""
    import resource

    die_with_parent()
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def tail(path: Path) -> str:
    """The end of a program's output; nothing if its episode has ended and removed it."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - PRINTED))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def end_marked(mark: str, since: int = 0) -> None:
    """Kill every process whose environment has this mark, until there is none.

    Args:
        since: when the first of them was started, as ``processes.start_ticks`` says. Older processes are not
        checked.
    """
    while found := [process for process in psutil.process_iter() if _marked(process, mark, since)]:
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=1.0)


def end_orphans() -> None:
    """Kill programs whose endpoint's process was killed before it could end them. Programs of another
    namespace, such as a container's, are left alone, because their endpoint has another number here.
    """
    marks = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            marks.add(process.environ().get(MARK, ""))
    for mark in marks:
        owner, _, rest = mark.partition(":")
        ours = rest.startswith(f"{namespace()}:")
        if ours and owner.isdecimal() and not psutil.pid_exists(int(owner)):
            end_marked(mark)


def _marked(process: psutil.Process, mark: str, since: int) -> bool:
    try:
        if start_ticks(process.pid) < since:
            return False
        return process.status() != psutil.STATUS_ZOMBIE and bool(process.environ().get(MARK) == mark)
    except psutil.Error:
        return False
