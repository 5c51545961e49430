"""DVC's own files, as a killed process may leave them.

DVC writes dvc.lock and its list of readers and writers in place. Killed in the middle, it leaves half
of one, and every later run fails on it until somebody removes it. Neither holds anything that is found
nowhere else: without dvc.lock, DVC restores what it has run before from its cache.

The list names processes by their numbers, and DVC fails while a process of that number exists. A killed
one may still exist as a zombie, in a container whose first process does not collect them, and another
process may have its number by then. Both are struck off the list.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json, write_json
from skillpress.core.yaml_files import YamlError, read_yaml_file

LOCK_FILE = Path("dvc.lock")
ACTIVE_FILE = Path(".dvc/tmp/rwlock")
CLOCK_SECONDS = 60.0
"""The file system's clock and that of the process table may differ by so much."""


def repair(workspace: Path) -> None:
    """Leave DVC nothing that a killed process has left behind; only while its workspace's lock is held."""
    set_broken_files_aside(workspace)
    forget_ended_processes(workspace)


def forget_ended_processes(workspace: Path) -> int:
    """Strike the processes off DVC's list that have ended; returns how many entries those were."""
    path = workspace / ACTIVE_FILE
    if not path.exists():
        return 0
    written = path.stat().st_mtime
    active = json.loads(path.read_text(encoding="utf-8"))
    writers, readers = active.get("write", {}), active.get("read", {})
    writing = {file: entry for file, entry in writers.items() if _runs(entry["pid"], written)}
    reading = {
        file: [entry for entry in entries if _runs(entry["pid"], written)]
        for file, entries in readers.items()
    }
    reading = {file: entries for file, entries in reading.items() if entries}
    struck = len(writers) - len(writing) + sum(map(len, readers.values())) - sum(map(len, reading.values()))
    if struck:
        write_json(path, {"write": writing, "read": reading})
    return struck


def _runs(pid: int, written: float) -> bool:
    """Whether the process that an entry names still runs; ``written`` is when the list was last written."""
    try:
        process = psutil.Process(pid)
        return bool(
            process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= written + CLOCK_SECONDS
        )
    except psutil.NoSuchProcess:
        return False


def set_broken_files_aside(workspace: Path) -> list[Path]:
    """Rename those of the two that DVC would refuse to read; only while no DVC runs in the workspace.

    Returns:
        The new names.
    """
    from dvc.rwlock import SCHEMA
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA

    aside = []
    readers = ((LOCK_FILE, read_yaml_file, COMPILED_LOCKFILE_SCHEMA), (ACTIVE_FILE, read_json, SCHEMA))
    for file, read, schema in readers:
        path = workspace / file
        if path.exists() and not _readable(path, read, schema):
            broken = workspace / ".dvc" / "tmp" / f"{path.name}.broken"
            broken.parent.mkdir(parents=True, exist_ok=True)
            path.replace(broken)
            aside.append(broken)
            print(f"{path}: half-written, now {broken}; DVC makes it anew", file=sys.stderr, flush=True)
    return aside


def _readable(path: Path, read: Callable[[Path], Any], schema: Callable[[Any], Any]) -> bool:
    from voluptuous import Invalid

    try:
        schema(read(path))
    except (YamlError, StorageError, Invalid):
        return False
    return True
