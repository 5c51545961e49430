"""The stage graph as ``dvc.yaml`` states it, read without DVC.

``dvc.yaml`` says which data, parameters and outputs a stage has. What code it runs, and by which versions, is
computed (:mod:`skillpress.pipeline.fingerprints`) and kept in a small file that the first stage writes; the
stage depends on that file like on any other. The key under which a stage keeps unfinished work is a hash of
the very same data, parameters and fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.resume import content_key
from skillpress.core.yaml_files import read_yaml_file

GRAPH = Path("dvc.yaml")
FINGERPRINTS = Path("data/fingerprints")
"""Where the first stage writes ``<stage>.json``."""
PLACES = frozenset({"skills.library.teacher.url", "skills.library.teacher.key_variable"})
"""Parameters inside others that say where a server is, and nothing of what it answers. Unfinished work goes
on when they change, since a server that was started again may be on another port."""


@dataclass(frozen=True)
class StageEntry:
    """One stage of ``dvc.yaml``."""

    name: str
    dependencies: tuple[Path, ...]
    parameters: tuple[str, ...]
    """Dotted keys of params.yaml."""
    outputs: tuple[Path, ...]

    @property
    def fingerprint(self) -> Path:
        """The file of its fingerprint."""
        return FINGERPRINTS / f"{self.name}.json"

    def key(self, values: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> str:
        """A hash of everything that decides the stage's result.

        Args:
            values: the resolved parameters.
            fingerprint: of the code that runs now. The file that the first stage wrote is not read: it may be
                older, where somebody runs a stage by hand.
        """
        read = {key: _without_places(reduce(getitem, key.split("."), values), key) for key in self.parameters}
        read |= {"stage": self.name, "fingerprint": fingerprint}
        return content_key(read, [path for path in self.dependencies if path != self.fingerprint])


def read_stages(graph: Path = GRAPH) -> list[StageEntry]:
    """The entries of all stages, in the file's order."""
    return [_entry(name, stage) for name, stage in read_yaml_file(graph)["stages"].items()]


def read_stage(name: str, graph: Path = GRAPH) -> StageEntry:
    """The entry of a stage; ``StorageError`` if ``dvc.yaml`` has none of this name."""
    stages = read_yaml_file(graph)["stages"]
    if name not in stages:
        raise StorageError(f"{graph}: has no stage {name!r}; its stages are {', '.join(stages)}")
    return _entry(name, stages[name])


def _entry(name: str, stage: Mapping[str, Any]) -> StageEntry:
    listed = [*stage.get("outs", []), *stage.get("metrics", [])]
    outputs = [
        out if isinstance(out, str) else next(iter(out)) for out in listed
    ]  # with options: {path: ...}
    return StageEntry(
        name=name,
        dependencies=tuple(map(Path, stage.get("deps", []))),
        parameters=tuple(stage.get("params", [])),
        outputs=tuple(map(Path, outputs)),
    )


def _without_places(value: Any, path: str) -> Any:
    """A copy of the value at this path without what ``PLACES`` names in it."""
    if not isinstance(value, Mapping):
        return value
    inside = {key: f"{path}.{key}" for key in value}
    return {key: _without_places(value[key], name) for key, name in inside.items() if name not in PLACES}
