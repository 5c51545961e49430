"""The isolation of gVisor: sandboxes and programs run on a kernel of its own, a process of the host that
makes few of the host's system calls. A hole in the host's kernel is out of their reach.

``runsc`` runs a bundle of the Open Container Initiative, which is made here from the same ``Inside`` as
bwrap's arguments. It starts without root's rights, as the user ``nobody`` if this process is root. Inside,
processes that may write into a folder of the host are user 0 without any capability, because gVisor maps no
other user without root's help. All other processes are user 1000, as with bubblewrap.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp

from skillpress.core.storage import remove_tree
from skillpress.rollouts.sandbox.first_process import FILTER, INTERRUPTS
from skillpress.rollouts.sandbox.held import BLOCK_BYTES, Held
from skillpress.rollouts.sandbox.interpreter import SEEN
from skillpress.rollouts.sandbox.interpreter import command as interpreter_command
from skillpress.rollouts.sandbox.interpreter import inside as inside_sandbox
from skillpress.rollouts.sandbox.isolation import HIDDEN_BYTES, SHARED_MEMORY_BYTES, Bind, Inside
from skillpress.rollouts.sandbox.limits import Limits, SandboxUnavailableError
from skillpress.rollouts.sandbox.processes import children_of_all, tree
from skillpress.rollouts.sandbox.seccomp import seccomp_program
from skillpress.rollouts.sandbox.spawner import spawner

FIRST = "/run/first.py"
"""Path inside of the first process's script, with which a command runs a Python script."""
FLAGS = ("--rootless", "--network=none", "--ignore-cgroups", "--host-uds=open", "--overlay2=none")
"""Settings of every start. ``--host-uds=open`` opens sockets that are mounted, and no other is visible."""
USER = 1000
"""The user inside, unless a folder of the host is writable there."""
OWN_PROCESSES = 4
"""The first processes below the outermost are gVisor's own; each that follows is a process inside."""
FIRST_DESCRIPTORS = 64
"""``MEMORY`` is open at one of this many first descriptors, since gVisor makes it before anything runs
inside."""
HIDDEN_DEVICES = ("/dev/fuse",)
"""Devices of gVisor's own kernel, whatever is mounted at ``/dev``, that nothing inside needs."""
MEMORY = "/memfd:runsc-memory"
"""The file in memory that holds all memory of the processes inside, and their files in memory."""
PROBE_SECONDS = 60.0
"""Maximum time for a probe on a busy machine; it usually takes 0.3 seconds."""
INSTALLING = (
    "install gVisor so that its program runsc is on PATH (as root on Debian: apt-get install runsc), "
    "or choose isolation: bubblewrap"
)


def find_runsc() -> Path:
    """gVisor's program on PATH; ``SandboxUnavailableError`` without it."""
    if found := shutil.which("runsc"):
        return Path(found).resolve()
    raise SandboxUnavailableError(
        f"isolation: gvisor needs gVisor, but runsc was not found on PATH: {INSTALLING}"
    )


def start_in_gvisor(
    command: Sequence[str],
    inside: Inside,
    folder: Path,
    output: int | None = None,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a command on a kernel of its own. When the process that is returned ends, all others do.

    Args:
        inside: what the command finds, in addition to ``FIRST``.
        folder: an existing folder in which the bundle gets a folder of its own. The caller removes it after
            the end.
        output: the descriptor of its stdout and stderr; None makes a pipe of each. A file's descriptor must
        be opened for appending, because gVisor keeps a separate position for each of the two. stdin: the
        descriptor of its input, the only other one that gVisor hands over; by default there is
            none.

    Raises:
        SandboxUnavailableError: runsc, setpriv or libseccomp is missing, or ``nobody`` cannot reach it.
    """
    birth, runsc, setpriv = spawner(), find_runsc(), shutil.which("setpriv")
    if setpriv is None:
        raise SandboxUnavailableError("isolation: gvisor needs setpriv: as root, apt-get install util-linux")
    bundle = Path(mkdtemp(prefix="gvisor-", dir=folder))
    _write(bundle, command, inside, seen_at=birth.writable(bundle))
    place = birth.writable(bundle)  # again: now with its content
    started = [setpriv, "--pdeathsig", "KILL", "--", str(birth.shown(runsc)), f"--root={place}/state", *FLAGS]
    return birth.spawn([*started, "run", "-bundle", str(place), uuid.uuid4().hex], (), output, stdin)


def probe() -> None:
    """Test whether anything can run in gVisor here.

    Raises:
        SandboxUnavailableError: it cannot; the message names the cause and the remedy.
    """
    with ExitStack() as held:
        process = start_in_gvisor(
            ["/usr/bin/true"], Inside("/tmp", 1, ip_sockets=True), _folder_of_its_own(held)
        )
        try:
            printed, said = process.communicate(timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, said = process.communicate()
            said += b"no end after %g seconds" % PROBE_SECONDS
    if process.returncode:
        words = (printed + said).decode(errors="replace") or f"exit code {process.returncode}"
        raise SandboxUnavailableError(explain(words))


def explain(said: str) -> str:
    """The error message of a start that failed."""
    return (
        f"gVisor cannot run anything here ({said.strip() or 'it said nothing'}): allow user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1, in a container --security-opt seccomp=unconfined), "
        "or choose isolation: bubblewrap"
    )


class GVisor:
    """gVisor around one sandbox. Its input is the sandbox's channel. The host's interrupts come by a socket
    that is mounted, since the host cannot send a signal to a process of gVisor's kernel."""

    seen = SEEN
    """What the interpreter must report before it runs anything. It may open its own memory, unlike others."""
    explain = staticmethod(explain)
    """The error message of a start that failed."""

    def __init__(self, limits: Limits, packages: Path | None) -> None:
        """``packages`` is a folder that code inside can import from; None for none."""
        self._limits, self._packages = limits, packages
        self._held = ExitStack()
        self._interrupts: socket.socket | None = None

    def start(self, setting: Mapping[str, object], channel: socket.socket) -> subprocess.Popen[bytes]:
        """See ``Bubblewrap.start``."""
        find_runsc()  # before anything is made
        folder = _folder_of_its_own(self._held)
        self._listener = self._held.enter_context(socket.socket(socket.AF_UNIX))
        place = folder / "interrupts"
        with _opened(folder) as opened:
            self._listener.bind(f"/proc/self/fd/{opened}/{place.name}")  # shorter than any path may be
        self._listener.listen(1)
        inside = inside_sandbox(self._limits, self._packages)
        place.chmod(0o666)  # the folder's name is secret, and the first connection is the only one
        bind = Bind(INTERRUPTS, spawner().shown(place))
        python = interpreter_command(setting, 0, self._packages, first=[FIRST])
        return start_in_gvisor(
            python, replace(inside, binds=[*inside.binds, bind]), folder, stdin=channel.fileno()
        )

    def lasts(self, outer: int, sender: int) -> list[int]:
        """See ``Bubblewrap.lasts``: gVisor's own processes. The one that sends is its kernel; when it ends,
        the host's kernel kills those inside."""
        self._listener.settimeout(self._limits.start_seconds)
        connection, _ = self._listener.accept()  # it was made before the first message was sent
        self._interrupts = self._held.enter_context(connection)
        self._listener.close()  # code inside cannot connect again
        own = tree(outer, children_of_all())[1 : 1 + OWN_PROCESSES]
        return [sender, *(pid for pid in own if pid != sender)]

    def interrupt(self, sender: int) -> None:
        """See ``Bubblewrap.interrupt``."""
        assert self._interrupts is not None, "a sandbox is interrupted after it has started"
        with suppress(OSError):
            self._interrupts.send(b"!", socket.MSG_DONTWAIT)

    def held(self, first: int, processes: Sequence[int]) -> Held:
        """See ``Watched.held``. gVisor itself limits processes and threads; it does not count files."""
        return replace(held_in_gvisor(processes, inodes=0, disk_bytes=0), threads=0)

    def close(self) -> None:
        """Remove what the start has made; call it after the end."""
        self._held.close()


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_PATH)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _folder_of_its_own(held: ExitStack) -> Path:
    """A folder that other users may pass through, until ``held`` is closed."""
    folder = Path(mkdtemp(prefix="isolation-", dir=spawner().folder()))
    held.callback(remove_tree, folder)
    folder.chmod(0o711)
    return folder


def held_in_gvisor(inside: Sequence[int], inodes: int, disk_bytes: int) -> Held:
    """A program's resources, except its processes' memory in ``/proc/PID/status``. That figure misses pages
    that gVisor has unmapped, and counts pages twice if two processes have mapped them.

    Args:
        inside: the processes below the one that ``start_in_gvisor`` returned, parents first.
        inodes: number of files in the folders that it can write to.
        disk_bytes: the size of these files on the disk.
    """
    own = inside[:OWN_PROCESSES]
    held = next((size for pid in own if (size := _memory_file_bytes(pid)) is not None), 0)
    mapped = sum(map(_mapped_bytes, inside)) if held else 0
    return Held(inodes, disk_bytes, memory_bytes=held - mapped, threads=len(inside) - len(own))


def _memory_file_bytes(process: int) -> int | None:
    """Size in bytes of gVisor's file in memory; None if this process does not have it open."""
    for number in range(FIRST_DESCRIPTORS):
        with suppress(OSError):  # closed meanwhile, or a name that is too long for any path
            path = f"/proc/{process}/fd/{number}"
            if os.readlink(path).startswith(MEMORY):
                return os.stat(path).st_blocks * BLOCK_BYTES
    return None


def _mapped_bytes(process: int) -> int:
    try:
        lines = Path("/proc", str(process), "status").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssShmem:"))


def _write(bundle: Path, command: Sequence[str], inside: Inside, seen_at: Path) -> None:
    """Write the bundle: its root with mount points, the contents of files, and config.json."""
    (bundle / "state").mkdir()
    (bundle / "files").mkdir()
    closed = bundle / "files" / "closed"
    closed.touch(0)
    binds = [Bind("/usr", Path("/usr")), *_alternatives(), *inside.binds]
    binds += [Bind(device, seen_at / "files" / closed.name) for device in HIDDEN_DEVICES]
    first = files("skillpress.rollouts.sandbox") / "first_process.py"
    contents = {
        **inside.files,
        FIRST: first.read_bytes(),
        FILTER: seccomp_program(inside.ip_sockets, inside.routes),
    }
    for number, (place, content) in enumerate(contents.items()):
        file = bundle / "files" / str(number)
        file.write_bytes(content)
        file.chmod(0o555)
        binds.append(Bind(place, seen_at / "files" / str(number)))
    root = bundle / "root"
    for place in ("/usr", "/proc", "/dev", "/tmp", *inside.folders):
        (root / place[1:]).mkdir(parents=True)
    links = {**{f"/{name}": f"usr/{name}" for name in ("bin", "lib", "lib64")}, **inside.links}
    for place, target in links.items():
        link = root / place[1:]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    (bundle / "config.json").write_text(json.dumps(_config(command, inside, binds, seen_at / "root")))


def _alternatives() -> list[Bind]:
    place = Path("/etc/alternatives")
    return [Bind(str(place), place)] if place.exists() else []


def _config(command: Sequence[str], inside: Inside, binds: Sequence[Bind], root: Path) -> dict[str, object]:
    """The bundle's config.json, in the words of the OCI's runtime specification."""
    user = 0 if any(bind.writable for bind in binds) else USER
    mounts = [
        _mount("/proc", "proc", []),
        _mount("/dev", "tmpfs", []),  # a read-only one would make /dev/null so
        _in_memory("/dev/shm", SHARED_MEMORY_BYTES),
        *(_in_memory(place, inside.disk_mb << 20) for place in ("/tmp", *inside.folders)),
    ]
    for bind in binds:
        rights = "rw" if bind.writable else "ro"
        mounts.append(_mount(bind.place, "bind", ["rbind", rights], str(bind.source)))
    for place in inside.hidden:
        mounts.append(_mount(place, "tmpfs", ["ro", "nosuid", "nodev", f"size={HIDDEN_BYTES}"]))
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(root), "readonly": True},
        "hostname": "sandbox",
        "process": {
            "user": {"uid": user, "gid": user},
            "args": list(command),
            "env": [f"{name}={value}" for name, value in inside.environment.items()],
            "cwd": inside.home,
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }


def _in_memory(place: str, size: int) -> dict[str, object]:
    return _mount(place, "tmpfs", ["nosuid", "nodev", "mode=1777", f"size={size}"])


def _mount(place: str, kind: str, options: list[str], source: str = "") -> dict[str, object]:
    return {"destination": place, "type": kind, "source": source or kind, "options": options}
