"""The stage graph as ``dvc.yaml`` states it, read without DVC.

It is the only statement of what a stage depends on: DVC decides by it what to run again, and the key
under which a stage keeps unfinished work is a hash of the very same files and parameters. A test
computes every stage's import closure and holds ``dvc.yaml`` to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.resume import content_key
from skillpress.core.yaml_files import read_yaml_file

PLACES = frozenset({"skills.library.teacher.url", "skills.library.teacher.key_variable"})
"""Parameters inside others that say where a server is, and nothing of what it answers. Unfinished work goes
on when they change, since a server that was started again may be on another port."""
_TEMPLATE = re.compile(r"\$\{([\w.]+)\}")


@dataclass(frozen=True)
class StageEntry:
    """One stage of ``dvc.yaml``, its templates filled in."""

    name: str
    dependencies: tuple[Path, ...]
    parameters: tuple[str, ...]
    """Dotted keys of params.yaml."""
    outputs: tuple[Path, ...]

    def key(self, values: Mapping[str, Any]) -> str:
        """A hash of all that decides the stage's result, from the resolved parameters."""
        read = {key: _without_places(_value(values, key), key) for key in self.parameters}
        read["stage"] = self.name
        return content_key(read, self.dependencies)


def read_stage(name: str, values: Mapping[str, Any], graph: Path = Path("dvc.yaml")) -> StageEntry:
    """The entry of a stage.

    Args:
        values: the resolved parameters, by which templates such as ``${environment.name}`` are filled in.

    Raises:
        StorageError: ``dvc.yaml`` has no such stage.
    """
    stages = read_yaml_file(graph)["stages"]
    if name not in stages:
        raise StorageError(f"{graph}: has no stage {name!r}; its stages are {', '.join(stages)}")
    stage = stages[name]
    filled = [_TEMPLATE.sub(lambda m: str(_value(values, m[1])), dep) for dep in stage.get("deps", [])]
    listed = [*stage.get("outs", []), *stage.get("metrics", [])]
    outputs = [
        out if isinstance(out, str) else next(iter(out)) for out in listed
    ]  # with options: {path: ...}
    return StageEntry(
        name=name,
        dependencies=tuple(map(Path, filled)),
        parameters=tuple(stage.get("params", [])),
        outputs=tuple(map(Path, outputs)),
    )


def _value(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for part in key.split("."):
        found = found[part]
    return found


def _without_places(value: Any, path: str) -> Any:
    """A copy of the value at this path without what ``PLACES`` names in it."""
    if not isinstance(value, Mapping):
        return value
    inside = {key: f"{path}.{key}" for key in value}
    return {key: _without_places(value[key], name) for key, name in inside.items() if name not in PLACES}
