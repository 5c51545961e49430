"""The thread that starts all sandboxes.

``--die-with-parent`` ends a sandbox when the *thread* that started it ends. So one thread, which lives as
long as this process, starts all of them. If this process is root, bwrap must not be: "root" inside would be
root for the host's files. bwrap then runs as the user ``nobody``, who may be unable to enter the
interpreter's folder (above all ``/root``). In that case the thread gets its own mount namespace, in which
such folders appear at a place that every user may enter. These mounts are invisible to all other processes on
the machine.

Python can change the user of a new process only after a fork, and a fork copies the page tables of this
process, which may hold gigabytes. setpriv changes the user after the exec, so nothing is copied.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skillpress.core.temporary import TemporaryFolder
from skillpress.rollouts.sandbox.limits import SandboxUnavailableError

NOBODY = 65534
CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MINIMAL_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""bwrap's own environment, which could be read inside as that of process 1."""


class Spawner:
    """Starts processes without privileges from one long-lived thread."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._root = os.geteuid() == 0
        self._setpriv = shutil.which("setpriv") if self._root else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sandbox-spawner")
        self._shown: dict[Path, Path] = {}
        self._places = itertools.count()
        self._has_mounts = False
        self._folder: TemporaryFolder | None = None

    def folder(self) -> Path:
        """A folder for temporary files that its processes may enter; it is removed with this process."""
        return self._thread.submit(self._own_folder).result()

    def shown(self, path: Path) -> Path:
        """Where its processes find the path, mounted if need be; or ``SandboxUnavailableError``.

        What lies in the closed folder that is nearest to the path is mounted once, so that the folders of a
        run's episodes share a mount.
        """
        closed = next((part for part in path.parents if not _is_open(part)), None) if self._root else None
        if closed is None:
            return path
        within = closed / path.relative_to(closed).parts[0]
        if within not in self._shown or not self._shown[within].exists():  # a cleaner of /tmp removed it
            self._shown[within] = self._thread.submit(self._mount, within).result()
        return self._shown[within] / path.relative_to(within)

    def writable(self, folder: Path) -> Path:
        """Give a folder and its content to the user of its children; where they find it, as ``shown``."""
        if not self._root:
            return folder
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return self.shown(folder.parent) / folder.name

    def spawn(
        self,
        command: Sequence[str],
        descriptors: Sequence[int],
        output: int | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a command with these descriptors.

        Args:
            output: the descriptor of its stdout and stderr; None makes a pipe of each.
            stdin: the descriptor of its input; by default it has none.
        """
        return self._thread.submit(self._spawn, command, descriptors, output, stdin).result()

    def _spawn(
        self, command: Sequence[str], descriptors: Sequence[int], output: int | None, stdin: int
    ) -> subprocess.Popen[bytes]:
        forked = self._root and self._setpriv is None
        if self._setpriv is not None:
            nobody = [self._setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            command = [*nobody, "--", *command]
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE if output is None else output,
            stderr=subprocess.PIPE if output is None else output,
            bufsize=0,
            cwd="/",
            env=MINIMAL_ENVIRONMENT,
            pass_fds=descriptors,
            user=NOBODY if forked else None,
            group=NOBODY if forked else None,
            extra_groups=[] if forked else None,
        )

    def _mount(self, path: Path) -> Path:
        if not self._has_mounts:
            _own_mounts()
            self._has_mounts = True
        place = self._own_folder() / str(next(self._places))
        if path.is_dir():
            place.mkdir()
        else:
            place.touch()
        _mount(path, place, MS_BIND | MS_REC)
        return place

    def _own_folder(self) -> Path:
        if self._folder is None or not self._folder.path.is_dir():
            self._folder = TemporaryFolder("sandboxes", _open_folder())
            atexit.register(self._folder.remove)  # outside of the thread's namespace its mounts are empty
        return self._folder.path


def _is_open(folder: Path) -> bool:
    return bool(os.stat(folder).st_mode & 1)


def _open_folder() -> Path:
    """A folder for temporary files that every user may enter: the usual one, or else the system's."""
    for folder in map(Path, (tempfile.gettempdir(), "/tmp", "/var/tmp")):
        if folder.is_dir() and all(map(_is_open, (folder, *folder.parents))):
            return folder
    raise SandboxUnavailableError(
        f"{tempfile.gettempdir()}: only its owner may enter it, and /tmp and /var/tmp are closed as well. "
        "Sandboxes of root run as a user without rights; set TMPDIR to a folder that all users may enter"
    )


def _own_mounts() -> None:
    """Give this thread a mount namespace: only the thread and its children see its mounts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise _no_mounts(ctypes.get_errno())
    _mount(Path("none"), Path("/"), MS_REC | MS_PRIVATE)


def _mount(source: Path, target: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(str(source).encode(), str(target).encode(), None, ctypes.c_ulong(flags), None):
        raise _no_mounts(ctypes.get_errno())


def _no_mounts(number: int) -> SandboxUnavailableError:
    return SandboxUnavailableError(
        "sandboxes run as the user nobody if this program is root, and that user cannot enter the folder of "
        f"{Path(os.path.realpath('/proc/self/exe')).parent}; showing it elsewhere failed "
        f"({os.strerror(number)}). Put the interpreter where everybody may read it, or do not run as root"
    )


_spawner: Spawner | None = None


def spawner() -> Spawner:
    """This process's spawner; a forked child gets its own."""
    global _spawner
    if _spawner is None or _spawner.owner != os.getpid():
        _spawner = Spawner()
    return _spawner
