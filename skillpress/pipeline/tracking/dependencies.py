"""DVC's knowledge about a stage's inputs, read from its own files without importing DVC.

``dvc.yaml`` names a stage's dependencies; ``dvc.lock`` has the hash of every output that an earlier
stage made. A dependency that is not a stage's output is source code, which the git revision identifies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillpress.core.yaml_files import read_yaml_file


def data_hashes(stage: str) -> dict[str, str]:
    """Path to DVC hash, for inputs of the stage that are outputs of other stages."""
    dependencies = _read("dvc.yaml").get(stage, {}).get("deps", [])
    made = {
        out["path"]: str(out.get("md5", ""))
        for locked in _read("dvc.lock").values()
        for out in locked.get("outs", [])
    }
    return {path: made[path] for path in dependencies if path in made}


def _read(path: str) -> dict[str, Any]:
    """The ``stages`` of one of DVC's files; empty if there is no file."""
    file = Path(path)
    if not file.exists():
        return {}
    stages: dict[str, Any] = read_yaml_file(file).get("stages", {})
    return stages
