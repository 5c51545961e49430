"""The root that a task's episodes run over: this machine's ``/usr``, an unpacked folder, or a built image.

An image is built once from its folder ``environment``, by buildah with chroot isolation, and unpacked into
the user's cache. Its files then belong to the user who starts isolated processes, the only one inside.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.lab import ROOT
from skillpress.core.storage import remove_tree, write_text
from skillpress.environments.harbor.parameters import BUILD, MACHINE
from skillpress.environments.harbor.task_files import HarborTask
from skillpress.rollouts.sandbox.bubblewrap import PROBE_SECONDS, explain
from skillpress.rollouts.sandbox.isolation import Inside, start_isolated
from skillpress.rollouts.sandbox.limits import SandboxUnavailableError
from skillpress.rollouts.sandbox.spawner import NOBODY, spawner

_BUILDING = threading.Lock()
"""Held during a build, because builds share buildah's storage."""


class Roots:
    """The root of each task."""

    def __init__(self, root: str) -> None:
        """Args:
            root: ``environment.root``.

        Raises:
            UserError: the folder cannot be a root, a program is missing, or overlays cannot be used here.
        """
        self._folder: Path | None = None
        self._built: dict[str, Path] = {}
        self._build = root == BUILD
        if root == MACHINE:
            return
        if self._build:
            _check_buildah()
        else:
            self._folder = next((path for path in (Path.cwd() / root, ROOT / root) if path.is_dir()), None)
            if self._folder is None:
                raise ParamsError(f"environment.root: {root!r} is neither a folder nor {MACHINE} nor {BUILD}")
        if Path(sys.base_prefix).resolve().is_relative_to("/usr"):
            raise ParamsError(
                f"environment.root: {root}: the agent's side runs by this Python, whose folder "
                f"{sys.base_prefix} another root would hide; use a Python outside /usr, such as uv's, or "
                f"root: {MACHINE}"
            )
        if self._folder is not None:
            check_root(self._folder)

    def of(self, task: HarborTask) -> Path | None:
        """The unpacked root of a task, built if it does not exist yet; None for this machine's ``/usr``.

        Raises:
            TaskError: the image cannot be built.
        """
        if not self._build:
            return self._folder
        if task.name not in self._built:
            self._built[task.name] = built(task, cache())
        return self._built[task.name]


def check_root(folder: Path) -> None:
    """Refuse a folder that no episode could run over.

    Raises:
        UserError: its files belong to another user than the isolated processes, it has no ``bash``, or
            overlays cannot be used here.
    """
    user, owner = NOBODY if os.geteuid() == 0 else os.geteuid(), folder.stat().st_uid
    if owner != user:
        raise ParamsError(
            f"environment.root: {folder} belongs to user {owner}, but episodes run as user {user}, who could "
            f"not write there: chown -R {user}:{user} {folder}"
        )
    inside = Inside(
        "/", disk_mb=1, ip_sockets=False, root=spawner().shown(folder.resolve()), writable=True, user=0
    )
    process = start_isolated(["/bin/bash", "-c", "exit 0"], inside)
    _, said = process.communicate(timeout=PROBE_SECONDS)
    if process.returncode:
        raise SandboxUnavailableError(f"environment.root: {folder}: {explain(said.decode(errors='replace'))}")


def cache() -> Path:
    """The folder of built roots; it can be deleted at any time."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "skillpress" / "harbor"


def folder_digest(folder: Path) -> str:
    """A hash of a folder: the names, modes and contents of its files."""
    content = blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")):
        content.update(f"{path.relative_to(folder)}\0{path.stat().st_mode:o}\0".encode())
        if path.is_file():
            content.update(blake2b(path.read_bytes()).digest())
    return content.hexdigest()


def built(task: HarborTask, place: Path) -> Path:
    """The root of a task's image, built and unpacked below ``place`` unless it exists already.

    Raises:
        TaskError: it cannot be built; the message has the end of what buildah says.
    """
    digest = folder_digest(task.context)
    found = place / digest
    if found.is_dir():
        return found
    place.mkdir(parents=True, exist_ok=True)
    with _BUILDING, (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.is_dir():
            _build(task, place, digest)
    return found


def image_of(root: Path | None) -> Mapping[str, Any]:
    """The configuration of the image from which a root was built."""
    assert root is not None
    said = json.loads(root.with_name(f"{root.name}.json").read_text())
    found: Mapping[str, Any] = said["OCIv1"].get("config", {})
    return found


def _build(task: HarborTask, place: Path, digest: str) -> None:
    image, new = f"localhost/skillpress-{digest}", place / f"{digest}.new"
    seconds = task.settings.environment.build_timeout_sec
    storage = ["--root", str(place / "storage"), "--runroot", str(place / "run"), "--storage-driver", "vfs"]

    def buildah(*arguments: str) -> str:
        return _said(task, ["buildah", *storage, *arguments], seconds)

    built_by_chroot = ["bud", "--isolation", "chroot", "--tag", image, str(task.context)]
    buildah(*built_by_chroot)
    container = buildah("from", "--pull-never", image)
    try:
        write_text(place / f"{digest}.json", buildah("inspect", container))
        remove_tree(new)
        _said(task, ["cp", "-a", "--", buildah("mount", container), str(new)], seconds)
        _said(task, ["chown", "-hR", f"{NOBODY}:{NOBODY}", str(new)], seconds)
        _said(task, ["chmod", "-R", "u+rwX", str(new)], seconds)  # as root of the image could
    finally:
        buildah("rm", container)
        buildah("rmi", image)
    check_root(new)
    new.rename(place / digest)


def _said(task: HarborTask, command: Sequence[str], seconds: float) -> str:
    """Run a command and return its output without surrounding blanks."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise TaskError(
            f"{task.context}: the build takes longer than environment.build_timeout_sec ({seconds:g})"
        ) from None
    if done.returncode:
        raise TaskError(f"{task.context}: {' '.join(command[:8])} fails: {done.stderr[-2000:].strip()}")
    return done.stdout.strip()


def _check_buildah() -> None:
    if shutil.which("buildah") is None:
        raise ParamsError(
            f"environment.root: {BUILD} needs buildah, which is not installed (as root on Debian: apt-get "
            f"install buildah); or name an unpacked root, or {MACHINE}"
        )
    if os.geteuid():
        raise ParamsError(
            f"environment.root: {BUILD} needs root, since only root unpacks files of other users; name a "
            f"root that is unpacked already, or {MACHINE}"
        )
