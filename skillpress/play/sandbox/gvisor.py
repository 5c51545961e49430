"""The isolation of gVisor: programs run on a kernel of its own, a process of the host that makes few of the
host's system calls. A hole in the host's kernel is out of their reach.

``runsc`` runs a bundle of the Open Container Initiative, which is made here from the same ``Inside`` as
bwrap's arguments. It starts without rights of root, as the user ``nobody`` if this process is root. Inside,
that user appears as user 0 without any capability: gVisor maps no other user without root's help.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from skillpress.play.sandbox.held import BLOCK_BYTES, Held
from skillpress.play.sandbox.isolation import SHARED_MEMORY_BYTES, Bind, Inside
from skillpress.play.sandbox.limits import SandboxUnavailableError
from skillpress.play.sandbox.seccomp import seccomp_program
from skillpress.play.sandbox.spawner import spawner

FILTER = "/run/seccomp"
"""Where the seccomp filter lies inside. The first process there must load it: ``runsc`` reads filters only in
another form."""
FLAGS = ("--rootless", "--network=none", "--ignore-cgroups", "--host-uds=open", "--overlay2=none")
"""Settings of every start. ``--host-uds=open`` opens sockets that are mounted, and no other is visible."""
OWN_PROCESSES = 4
"""The first processes below the outermost are gVisor's own; each that follows is a process inside."""
FIRST_DESCRIPTORS = 64
"""``MEMORY`` is open at one of so many, since gVisor makes it before anything runs inside."""
HIDDEN_DEVICES = ("/dev/fuse",)
"""Devices of gVisor's own kernel, whatever is mounted at ``/dev``, that nothing inside needs."""
MEMORY = "/memfd:runsc-memory"
"""The file in memory that holds all memory of the processes inside, and their files in memory."""
PROBE_SECONDS = 60.0
"""Maximum time for a probe on a busy machine; it usually takes 0.3 seconds."""
INSTALLING = (
    "install gVisor so that its program runsc is on PATH (as root on Debian: apt-get install runsc), "
    "or choose walls: bubblewrap"
)


def find_runsc() -> Path:
    """gVisor's program on PATH; ``SandboxUnavailableError`` without it."""
    if found := shutil.which("runsc"):
        return Path(found).resolve()
    raise SandboxUnavailableError(f"walls: gvisor needs gVisor, and there is no runsc on PATH: {INSTALLING}")


def start_in_gvisor(
    command: Sequence[str], inside: Inside, folder: Path, output: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a command on a kernel of its own. When the process that is returned ends, all others do.

    Args:
        inside: what it finds; ``mounts`` are arguments for bwrap and must be empty.
        folder: an existing folder in which the bundle gets a folder of its own. The caller removes it after
            the end.
        output: the descriptor of its stdout and stderr; None makes a pipe of each. One of a file must append:
            gVisor keeps a position of its own for each of the two.

    Raises:
        SandboxUnavailableError: runsc, setpriv or libseccomp is missing, or ``nobody`` cannot reach it.
    """
    if inside.mounts:
        raise ValueError(f"gVisor reads no arguments for bwrap, and there are {list(inside.mounts)}")
    birth, runsc, setpriv = spawner(), find_runsc(), shutil.which("setpriv")
    if setpriv is None:
        raise SandboxUnavailableError("walls: gvisor needs setpriv: as root, apt-get install util-linux")
    bundle = Path(mkdtemp(prefix="gvisor-", dir=folder))
    _write(bundle, command, inside, seen_at=birth.writable(bundle))
    place = birth.writable(bundle)  # again: now with its content
    started = [setpriv, "--pdeathsig", "KILL", "--", str(birth.shown(runsc)), f"--root={place}/state", *FLAGS]
    return birth.spawn([*started, "run", "-bundle", str(place), uuid.uuid4().hex], (), output)


def probe() -> None:
    """Test whether a program can run in gVisor here.

    Raises:
        SandboxUnavailableError: it cannot; the message names the cause and the remedy.
    """
    with TemporaryDirectory(prefix="skillpress-") as folder:
        os.chmod(folder, 0o711)
        process = start_in_gvisor(
            ["/usr/bin/true"], Inside("/tmp", 1, ip_sockets=True, mounts=()), Path(folder)
        )
        try:
            printed, said = process.communicate(timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, said = process.communicate()
            said += b"no end after %g seconds" % PROBE_SECONDS
    if process.returncode:
        words = (printed + said).decode(errors="replace").strip() or f"exit code {process.returncode}"
        raise SandboxUnavailableError(
            f"gVisor cannot run a program here ({words}): allow user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, in a container --security-opt seccomp=unconfined), "
            "or choose walls: bubblewrap"
        )


def held_in_gvisor(inside: Sequence[int], inodes: int, disk_bytes: int) -> Held:
    """What a program holds, beside its processes' memory as ``/proc/PID/status`` counts it: that misses pages
    which gVisor has unmapped, and counts pages twice that two processes have mapped.

    Args:
        inside: the processes below the one that ``start_in_gvisor`` returned, parents first.
        inodes: number of files in the folders that it can write to.
        disk_bytes: what these files take on the disk.
    """
    own = inside[:OWN_PROCESSES]
    held = next((size for pid in own if (size := _memory_file_bytes(pid)) is not None), 0)
    mapped = sum(map(_mapped_bytes, inside)) if held else 0
    return Held(inodes, disk_bytes, memory_bytes=held - mapped, threads=len(inside) - len(own))


def _memory_file_bytes(process: int) -> int | None:
    """Bytes that the file in memory of gVisor holds; None if this process does not have it open."""
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
    contents = {**inside.files, FILTER: seccomp_program(inside.ip_sockets, inside.routes)}
    for number, (place, content) in enumerate(contents.items()):
        file = bundle / "files" / str(number)
        file.write_bytes(content)
        file.chmod(0o555)
        binds.append(Bind(place, seen_at / "files" / str(number)))
    root = bundle / "root"
    for name in ("usr", "proc", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (bundle / "config.json").write_text(json.dumps(_config(command, inside, binds, seen_at / "root")))


def _alternatives() -> list[Bind]:
    place = Path("/etc/alternatives")
    return [Bind(str(place), place)] if place.exists() else []


def _config(command: Sequence[str], inside: Inside, binds: Sequence[Bind], root: Path) -> dict[str, object]:
    """The bundle's config.json, in the words of the OCI's runtime specification."""
    mounts = [
        _mount("/proc", "proc", []),
        _mount("/dev", "tmpfs", ["ro"]),
        _in_memory("/dev/shm", SHARED_MEMORY_BYTES),
        _in_memory("/tmp", inside.disk_mb << 20),
    ]
    for bind in binds:
        rights = "rw" if bind.writable else "ro"
        mounts.append(_mount(bind.place, "bind", ["rbind", rights], str(bind.source)))
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(root), "readonly": True},
        "hostname": "sandbox",
        "process": {
            "user": {"uid": 0, "gid": 0},
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
