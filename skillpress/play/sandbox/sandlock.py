"""Weaker walls, made of Landlock and seccomp by sandlock, for machines that forbid user namespaces.

They have no process namespace and no root of their own. The interpreter lives among the host's processes and
paths but may touch few of them, and its writable folders are on the host's disk. docs/sandbox.md has a column
for the gaps that this leaves. These walls never replace bubblewrap's unless they are asked for.
"""

from __future__ import annotations

import base64
import ctypes
import importlib.util
import json
import os
import platform
import re
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from skillpress.play.sandbox.bubblewrap import RUNNER
from skillpress.play.sandbox.interpreter import this_interpreter
from skillpress.play.sandbox.isolation import VARIABLES
from skillpress.play.sandbox.limits import Limits, SandboxUnavailableError
from skillpress.play.sandbox.processes import children_of_all, socket_bytes, tree
from skillpress.play.sandbox.seccomp import seccomp_program
from skillpress.play.sandbox.spawner import NOBODY, spawner
from skillpress.play.sandbox.walls import BLOCK_BYTES, Held, Seen, Walls, files_in

SUPERVISOR = files("skillpress.play.sandbox") / "sandlock_supervisor.py"
OLDEST_KERNEL = (6, 7)
OLDEST_LANDLOCK = 6
CREATE_RULESET, VERSION = 444, 1
"""The number of landlock_create_ruleset, and its flag that asks only for the version."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
READABLE = ("/usr", "/bin", "/lib", "/lib64", "/proc/self")
REMOVAL_SECONDS = 60.0


class Sandlock(Walls):
    """Landlock and seccomp, maintained by a supervising process."""

    whole: ClassVar[Seen] = {
        "Seccomp": "2",
        "NoNewPrivs": "1",
        "CapEff": f"{0:016x}",
        "outside": "PermissionError",
        "network": "PermissionError",
    }

    def __init__(self, limits: Limits, packages: Path | None) -> None:
        """``packages`` can be imported inside; ``SandboxUnavailableError`` without sandlock or Landlock."""
        self.probe()
        self._limits, self._packages = limits, packages
        self._folder = Path(tempfile.mkdtemp(prefix="sandbox-"))
        self._folder.chmod(0o755)
        self._writable = [self._folder / name for name in ("home", "tmp")]
        for path in self._writable:
            path.mkdir()
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
        self.home = str(self._writable[0])
        self._runner, self._outside = self._folder / "runner.py", self._folder / "outside"
        self._runner.write_bytes(RUNNER.read_bytes())
        self._outside.write_text("The interpreter tries to read this before it says what it sees.")

    @classmethod
    def probe(cls) -> None:
        if reason := refusal(platform.release(), landlock_version()):
            raise SandboxUnavailableError(reason)
        sandlock_package()

    def start(self, setting: dict[str, object], descriptor: int) -> subprocess.Popen[bytes]:
        birth, interpreter = spawner(), this_interpreter()
        executable, folders = interpreter.executable, []
        if interpreter.folder is not None:
            folders.append(birth.shown(interpreter.folder))
            executable = folders[0] / executable.relative_to(interpreter.folder)
        paths = [] if self._packages is None else [birth.shown(self._packages)]
        python = [str(executable), "-I", "-S", "-B", "-X", "utf8"]
        inside = {
            **setting,
            "socket": 0,  # all descriptors but the first three are closed
            "paths": [str(path) for path in paths],
            "processes": None,  # the kernel counts those of a user, which all sandboxes share
            "filter": base64.b64encode(seccomp_program(self._limits.ip_sockets)).decode(),
            "outside": str(self._outside),
            "dumpable": True,  # else a host that is not root cannot count open files; /proc is forbidden
        }
        supervisor = {
            "socket": descriptor,
            "host": os.getpid(),
            "packages": str(birth.shown(sandlock_package().parent)),
            "policy": self._policy([*folders, *paths]),
            "command": [*python, str(self._runner), json.dumps(inside)],
        }
        return birth.spawn([*python, "-c", SUPERVISOR.read_text(), json.dumps(supervisor)], [descriptor])

    def explain(self, said: str) -> str:
        return f"sandlock cannot build a sandbox here: {said.strip() or 'it said nothing'}"

    def last(self, runner: int) -> int:
        """The interpreter, since no other process is known to end later."""
        return runner

    def held(self, last: int, processes: Sequence[int]) -> Held:
        """Count until a limit is exceeded."""
        nameless, sockets = _open_in(processes)
        inodes, occupied = files_in(self._writable, self._limits.inodes)
        return Held(inodes, nameless + occupied, sockets * socket_bytes())

    def kill(self, outer: int) -> None:
        """Stop the supervisor, without which no process can be started, and kill all processes below it."""
        with suppress(ProcessLookupError):
            os.kill(outer, signal.SIGSTOP)
            for pid in tree(outer, children_of_all())[1:]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Remove the folders, including unreadable and deeply nested ones that code inside may have made."""
        removal = ["rm", "-rf", "--one-file-system"]
        for command in (removal, ["chmod", "-R", "u+rwx"], removal):
            if self._folder.exists():
                with suppress(subprocess.TimeoutExpired):  # files that remain then do not end another episode
                    subprocess.run(
                        [*command, str(self._folder)],
                        stderr=subprocess.DEVNULL,
                        timeout=REMOVAL_SECONDS,
                        check=False,
                    )

    def _policy(self, folders: Sequence[Path]) -> dict[str, object]:
        """The policy for sandlock. These folders are readable beside those that all sandboxes read."""
        return {
            "fs_readable": [*READABLE, *map(str, folders), str(self._runner)],
            "fs_writable": [*map(str, self._writable), *DEVICES],
            "cwd": self.home,
            "clean_env": True,
            "env": {"HOME": self.home, "TMPDIR": str(self._writable[1]), **VARIABLES},
            "no_coredump": True,
            "max_processes": self._limits.processes,
        }


def sandlock_package() -> Path:
    """The folder of the package; ``SandboxUnavailableError`` if it is not installed."""
    spec = importlib.util.find_spec("sandlock")
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(
            "the sandbox backend sandlock needs the package: pip install 'skillpress[sandlock]'"
        )
    return Path(spec.origin).parent


def _open_in(processes: Sequence[int]) -> tuple[int, int]:
    """(bytes of files without a name, number of sockets) that are open in these processes."""
    files, sockets = {}, set()
    for pid in processes:
        with suppress(OSError):  # it has ended
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    state = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(state.st_mode) and not state.st_nlink:
                        files[state.st_dev, state.st_ino] = state.st_blocks * BLOCK_BYTES
                    elif stat.S_ISSOCK(state.st_mode):
                        sockets.add(state.st_ino)
    return sum(files.values()), len(sockets)


def refusal(release: str, version: int) -> str:
    """Why a kernel (``uname -r``, Landlock's version or 0) does not suffice; empty if it does."""
    number = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    if number < OLDEST_KERNEL:
        return (
            f"the sandbox backend sandlock needs Linux {'.'.join(map(str, OLDEST_KERNEL))} or later; this is "
            f"{release}. There are no weaker walls: run on another kernel, or let bubblewrap make namespaces"
        )
    if version < OLDEST_LANDLOCK:
        found = f"version {version}" if version else "none (is landlock among the LSMs of the boot line?)"
        return (
            f"the sandbox backend sandlock needs Landlock of version {OLDEST_LANDLOCK} or later, and this "
            f"kernel ({release}) has {found}"
        )
    return ""


def landlock_version() -> int:
    """Landlock's version in the running kernel; 0 if it has none or a container forbids the question."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)))
