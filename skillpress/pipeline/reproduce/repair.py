"""Repairs DVC's own files after a process was killed.

DVC writes dvc.lock and its list of readers and writers in place. If it is killed in the middle, half a file
is left, and every later run fails until the user removes it. The content of these files can be recovered:
without dvc.lock, DVC restores earlier results from its cache.

The list names processes by their pids, and DVC fails while a process of that pid exists. A killed process may
still exist as a zombie, in a container whose first process does not collect zombies, or another process may
have its pid by then. Both are removed from the list.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json, write_json
from skillpress.core.yaml_files import YamlError, read_yaml_file

_LOG = logging.getLogger(__name__)

LOCK_FILE = Path("dvc.lock")
ACTIVE_FILE = Path(".dvc/tmp/rwlock")
CLOCK_SECONDS = 60.0
"""The largest difference between the file system's clock and the process table's."""


def repair(workspace: Path) -> None:
    """Remove what killed processes left in DVC's files. Call it only while the workspace's lock is held."""
    set_broken_files_aside(workspace)
    forget_ended_processes(workspace)


def forget_ended_processes(workspace: Path) -> int:
    """Remove ended processes from DVC's list; returns the number of removed entries."""
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
    """Whether an entry's process still runs; ``written`` is when the list was last written."""
    try:
        process = psutil.Process(pid)
        return bool(
            process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= written + CLOCK_SECONDS
        )
    except psutil.NoSuchProcess:
        return False


def set_broken_files_aside(workspace: Path) -> list[Path]:
    """Rename each of the two files that DVC could not read. Call it only while no DVC runs in the workspace.

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
            _LOG.warning("%s: half-written, now %s; DVC makes it again", path, broken)
    return aside


def _readable(path: Path, read: Callable[[Path], Any], schema: Callable[[Any], Any]) -> bool:
    from voluptuous import Invalid

    try:
        schema(read(path))
    except (YamlError, StorageError, Invalid):
        return False
    return True
