"""The isolation of a command: the sandboxes' isolation, with the files that a program needs. Inside are
``/usr``, the interpreter with its packages, paths that the command names absolutely, and the episode's folder
at ``HOME`` with copies of ``environment.files``. The rest of the lab is missing: no task file, no verifier,
no rollouts. A forwarder inside listens on a port of the isolated loopback and passes every connection on to
the endpoint's Unix socket, so an unmodified client works with its base URL.

Memory, processes and files are limited by the watchdog of the sandboxes, which checks every 0.1 seconds, and
by the kernel if it has such a limit. The address space is not limited: programs on V8 or Go reserve far more
than they use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path

from skillpress.core.errors import ParamsError
from skillpress.rollouts.programs.isolated_process import FORWARDER, IsolatedProcess, opened
from skillpress.rollouts.sandbox.gvisor import FIRST, start_in_gvisor
from skillpress.rollouts.sandbox.isolation import VARIABLES, Bind, Inside, Kind, start_isolated
from skillpress.rollouts.sandbox.limits import Limits
from skillpress.rollouts.sandbox.spawner import spawner

PORT = 8000
"""The forwarder's port inside."""
HOME = "/home/agent"
"""Path at which every episode's folder appears, so that equal tasks give equal prompts."""
PROCESSES, DISK_MB, INODES = 512, 1024, 200_000
"""Maximum numbers of an isolated program's processes and threads, megabytes of files, and files."""
LARGEST_FILE = 256 << 20
"""The largest file that a program can write, in bytes, isolated or not."""
MORE_PROCESSES = 512
"""The kernel allows this many more than ``PROCESSES``, so the watchdog can say which limit was exceeded."""
OWN_PROGRAMS = Path(sys.prefix, "bin")
"""Folder of this interpreter's programs, the first on the ``PATH`` inside."""
SOCKET = "/run/endpoint.sock"
FILES = {
    "/etc/passwd": f"agent:x:1000:1000::{HOME}:/bin/sh\n".encode(),
    "/etc/group": b"agent:x:1000:\n",
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
}
"""System files that programs read, in place of the host's own."""
CERTIFICATES = "/etc/ssl/certs"
"""Public certificates, without which some HTTP clients do not start."""
FAKETIME = ("lib/*/faketime/libfaketimeMT.so.1", "lib*/faketime/libfaketimeMT.so.1")
"""Paths of libfaketime in distributions, below ``/usr``, which isolated programs see."""
MARKS_OF_INSTALLATIONS = (
    "pyvenv.cfg",
    "lib/node_modules",
    *(f"lib/python3.{minor}" for minor in range(8, 20)),
)
"""Paths that identify a folder as the installation of a program in its ``bin``."""


@dataclass(frozen=True)
class Isolated:
    """Starts commands behind isolation."""

    socket: Path
    """The endpoint's Unix socket."""
    command: Sequence[str]
    """The program and its arguments; they determine which paths appear inside."""
    limits: Limits
    """The limits of memory, processes and files."""
    passed: Mapping[str, str] = field(default_factory=dict)
    """Variables of this process that the command gets as well."""
    isolation: Kind = "bubblewrap"
    """The isolation of the program."""
    day: date | None = None
    """The day on the command's clock, which begins at noon; None for the host's clock."""

    @staticmethod
    def limited(memory_mb: int) -> Limits:
        """The limits of a program that may use this much memory."""
        return Limits(
            memory_mb=memory_mb, processes=PROCESSES, disk_mb=DISK_MB, inodes=INODES, ip_sockets=True
        )

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        printed: Path,
        *,
        binds: Sequence[Bind] = (),
        descriptors: Sequence[int] = (),
    ) -> IsolatedProcess:
        """Start the command; the watchdog watches it from now on.

        Args:
            arguments: the command's, for this episode.
            folder: the episode's folder, with files of this process alone.
            variables: environment variables, in addition to those of every isolated process.
            printed: the file of its stdout and stderr.
            binds: further paths that it finds, as this process names them.
            descriptors: the descriptors that it inherits.
        """
        inside = self._inside(folder, variables, binds)
        with opened(printed) as output:
            process = self._process(arguments, inside, folder=folder, output=output, descriptors=descriptors)
        writable = [folder, *(bind.source for bind in binds if bind.writable)]
        return IsolatedProcess(
            process=process, folders=writable, printed=printed, limits=self.limits, isolation=self.isolation
        )

    def _process(
        self,
        arguments: Sequence[str],
        inside: Inside,
        *,
        folder: Path,
        output: int,
        descriptors: Sequence[int],
    ) -> subprocess.Popen[bytes]:
        """The outermost process of the command."""
        command = self._beside_forwarder([self._program, *arguments])
        if self.isolation == "gvisor":
            return start_in_gvisor([sys.executable, "-I", FIRST, *command], inside, folder.parent, output)
        return start_isolated([sys.executable, "-I", *command], inside, descriptors, output)

    def _inside(self, folder: Path, variables: Mapping[str, str], more: Sequence[Bind]) -> Inside:
        birth = spawner()
        binds = [Bind(HOME, birth.writable(folder), writable=True), Bind(SOCKET, birth.shown(self.socket))]
        if os.path.isdir(CERTIFICATES):
            binds.append(Bind(CERTIFICATES, Path(CERTIFICATES)))
        binds += [Bind(str(path), birth.shown(path)) for path in self._shown]
        binds += [replace(bind, source=birth.shown(bind.source)) for bind in more]
        return Inside(
            home=HOME,
            disk_mb=self.limits.disk_mb,
            ip_sockets=self.limits.ip_sockets,
            routes=True,
            binds=binds,
            files={**FILES, FORWARDER: Path(__file__).with_name("forwarder.py").read_bytes()},
            variables={
                "PATH": f"{OWN_PROGRAMS}:{VARIABLES['PATH']}",
                **({} if self.day is None else clock(self.day)),
                **self.passed,
                **variables,
            },
        )

    def _beside_forwarder(self, command: Sequence[str]) -> list[str]:
        """The script that runs a command beside the forwarder, with its arguments."""
        limits = [str(LARGEST_FILE), str(self.limits.processes + MORE_PROCESSES)]
        return [FORWARDER, str(PORT), SOCKET, *limits, *command]

    @cached_property
    def _program(self) -> str:
        """The program's path on the host, or the name in the folder of a copied file of the lab. It is
        searched in the same places as the program's own commands, so ``python`` is this interpreter even if
        its virtual environment is not active.
        """
        name = self.command[0]
        if "/" in name and Path(name).parent.name != "bin":
            return name  # a path would lose the "./" of a file in the folder
        found = shutil.which(name, path=f"{OWN_PROGRAMS}:{os.environ.get('PATH', os.defpath)}")
        return os.path.abspath(found) if found else name  # its links are followed one by one

    @cached_property
    def _shown(self) -> list[Path]:
        """Paths of the host that appear inside: this interpreter, and the paths in the command."""
        named = [*map(Path, (sys.executable, self._program, *self.command[1:]))]
        wanted = [path for path in named if path.is_absolute() and _exists(path)]
        found = dict.fromkeys(path for each in wanted for path in _needed(each))
        return [path for path in found if not any(other in path.parents for other in found)]


def clock(day: date) -> dict[str, str]:
    """Variables by which a dynamically linked program, started now, finds that it is noon of this day.

    Raises:
        ParamsError: libfaketime is not installed.
    """
    libraries = [path for place in FAKETIME for path in sorted(Path("/usr").glob(place))]
    if not libraries:
        raise ParamsError(
            "environment.date: libfaketime is not installed; as root: apt-get install libfaketime"
        )
    offset = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) - datetime.now(UTC)
    # An offset, not a time: a child that is started later must not begin at noon again.
    return {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME": f"{offset.total_seconds():.3f}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def url(key: str) -> str:
    """The endpoint's address as an isolated program sees it."""
    return f"http://127.0.0.1:{PORT}/e/{key}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no path at all, such as a program's text behind -c
        return False


def _needed(path: Path) -> Iterator[Path]:
    """The paths that must appear inside so that a path can be opened: every link on the way, with its
    installation.
    """
    seen: set[Path] = set()
    while path not in seen:
        seen.add(path)
        home = _installation(path)
        if not path.is_relative_to("/usr"):
            yield home
        if (settings := home / "pyvenv.cfg").is_file():
            yield from _base(settings)
        if path.is_symlink():
            path = Path(os.path.normpath(path.parent.resolve() / path.readlink()))
        else:
            path = path.resolve()  # a link among its folders: what is installed names its real place


def _installation(path: Path) -> Path:
    """The installation that a program belongs to; the path itself if it belongs to none."""
    home = path.parent.parent
    known = path.parent.name == "bin" and any((home / mark).exists() for mark in MARKS_OF_INSTALLATIONS)
    return home if known else path


def _base(settings: Path) -> Iterator[Path]:
    """The installation from which a virtual environment was made."""
    for line in settings.read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and not (bin_folder := Path(value.strip())).is_relative_to("/usr"):
            yield bin_folder.parent.resolve()
            yield bin_folder.parent
