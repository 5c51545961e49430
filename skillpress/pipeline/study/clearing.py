"""Removes what a recorded run no longer needs on the disk: its workspace and its large files in the cache.

A hundred runs would fill a disk. Files that the runs of one seed share (tasks, imitation start) stay in DVC's
cache for the other runs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from skillpress.core.yaml_files import read_yaml_file

OWN_STAGES = ("train_policy", "evaluate_policy", "report")
"""Stages whose outputs belong to one run."""
LARGE_BYTES = 100_000
"""Smaller files stay: two runs may share one, such as an empty skill library."""


def clear(workspace: Path, cache: Path) -> int:
    """Delete a finished run's workspace and its large outputs in the cache; returns the freed bytes."""
    freed = sum(_delete(cache / digest[:2] / digest[2:]) for digest in _digests(workspace, cache))
    freed += sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    shutil.rmtree(workspace, ignore_errors=True)
    return freed


def _digests(workspace: Path, cache: Path) -> Iterator[str]:
    """Digests of the files that the run's own stages made, from its dvc.lock."""
    lock = workspace / "dvc.lock"
    stages = read_yaml_file(lock)["stages"] if lock.exists() else {}
    for stage in OWN_STAGES:
        for out in stages.get(stage, {}).get("outs", ()):
            digest = str(out.get("md5", ""))
            listing = cache / digest[:2] / digest[2:]
            if digest.endswith(".dir") and listing.exists():
                yield from (entry["md5"] for entry in json.loads(listing.read_text(encoding="utf-8")))
            elif digest:
                yield digest


def _delete(path: Path) -> int:
    size = path.stat().st_size if path.is_file() else 0
    if size < LARGE_BYTES:
        return 0
    path.unlink()
    return size
