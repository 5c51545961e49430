"""Removes files that a recorded run no longer needs: its workspace and its large files in the cache.

A hundred runs would fill a disk. Files that the runs of one seed share (tasks, imitation start) stay in DVC's
cache for the other runs, also where a run's own output has the same file: a tokenizer, or weights that were
not trained.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from skillpress.core.yaml_files import read_yaml_file

OWN_STAGES = ("train_policy", "evaluate_policy", "report")
"""Stages whose outputs belong to one run."""
LARGE_BYTES = 100_000
"""Smaller files stay: two runs may share one, such as an empty skill library."""


def clear(workspace: Path, cache: Path) -> int:
    """Delete a finished run's workspace and its large outputs in the cache; returns the freed bytes."""
    lock = workspace / "dvc.lock"
    stages = read_yaml_file(lock)["stages"] if lock.exists() else {}
    shared = set(_digests([stages[name] for name in stages if name not in OWN_STAGES], cache))
    own = set(_digests([stages[name] for name in stages if name in OWN_STAGES], cache))
    freed = sum(_delete(cache / digest[:2] / digest[2:]) for digest in own - shared)
    freed += sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    shutil.rmtree(workspace, ignore_errors=True)
    return freed


def _digests(stages: Iterable[Mapping[str, Any]], cache: Path) -> Iterator[str]:
    """Digests of the files that the stages made, those in folders included; ``stages`` as in dvc.lock."""
    for stage in stages:
        for out in stage.get("outs", ()):
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
