"""What DVC knows about a stage's inputs, read from its own files (no DVC is imported for it).

``dvc.yaml`` names a stage's dependencies; ``dvc.lock`` holds the hash of every output that an earlier
stage has made. A dependency that is nobody's output is source code, which the git revision names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillpress.core.yaml_files import read_yaml_file


def data_hashes(stage: str) -> dict[str, str]:
    """Path to DVC hash of the stage's inputs that are outputs of other stages."""
    dependencies = _read("dvc.yaml").get(stage, {}).get("deps", [])
    made = {
        out["path"]: str(out.get("md5", ""))
        for locked in _read("dvc.lock").values()
        for out in locked.get("outs", [])
    }
    return {path: made[path] for path in dependencies if path in made}


def _read(path: str) -> dict[str, Any]:
    """The ``stages`` of one of DVC's files; empty while there is none."""
    file = Path(path)
    if not file.exists():
        return {}
    stages: dict[str, Any] = read_yaml_file(file).get("stages", {})
    return stages
