"""DVC's own files, as a killed process may leave them.

DVC writes dvc.lock and its list of readers and writers in place. Killed in the middle, it leaves half
of one, and every later run fails on it until somebody removes it. Neither holds anything that is found
nowhere else: without dvc.lock, DVC restores what it has run before from its cache.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

LOCK_FILE = Path("dvc.lock")
ACTIVE_FILE = Path(".dvc/tmp/rwlock")


def set_broken_files_aside(workspace: Path) -> list[Path]:
    """Rename those of the two that DVC would refuse to read; only while no DVC runs in the workspace.

    Returns:
        The new names.
    """
    from dvc.rwlock import SCHEMA
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA

    aside = []
    readers = ((LOCK_FILE, yaml.safe_load, COMPILED_LOCKFILE_SCHEMA), (ACTIVE_FILE, json.loads, SCHEMA))
    for file, parse, schema in readers:
        path = workspace / file
        if path.exists() and not _readable(path, parse, schema):
            broken = workspace / ".dvc" / "tmp" / f"{path.name}.broken"
            broken.parent.mkdir(parents=True, exist_ok=True)
            path.replace(broken)
            aside.append(broken)
            print(f"{path}: half-written, now {broken}; DVC makes it anew", file=sys.stderr, flush=True)
    return aside


def _readable(path: Path, parse: Callable[[str], Any], schema: Callable[[Any], Any]) -> bool:
    from voluptuous import Invalid

    try:
        schema(parse(path.read_text(encoding="utf-8")))
    except (ValueError, yaml.YAMLError, Invalid):  # ValueError: not JSON, or not UTF-8
        return False
    return True
