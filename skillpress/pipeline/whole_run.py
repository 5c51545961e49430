"""A stage's place in the whole run, and the remaining time, estimated from earlier runs of the stages here.

Each finished stage adds its seconds to a file of this machine, under a hash of its parameters without the
seed. The remaining time is shown only if every part of it is known: this stage from its own rate or its last
run, and each later stage that ``dvc.lock`` does not show to be up to date from its last run. DVC may restore
such a stage from its cache, so the time is an upper estimate.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from skillpress.core.moved import with_present_keys
from skillpress.core.resume import content_key
from skillpress.core.yaml_files import read_yaml_file
from skillpress.pipeline.graph import StageEntry, read_stages
from skillpress.pipeline.reproduce.workspace import FOLDER

STAGES = "SKILLPRESS_STAGES"
"""Variable with the stages that the run makes, set by the command that makes it; ``all`` for all."""
ALL = "all"
TIMES = Path(".dvc/tmp/stage_seconds.jsonl")
"""Lines of stage, key and seconds; in the repository, for all of its workspaces."""
LOCK = Path("dvc.lock")
SEED = "seed"


@dataclass(frozen=True)
class WholeRun:
    """The run that a stage is part of."""

    place: int
    """The stage's number, from 1."""
    stages: int
    known: float | None
    """Seconds of the last run of the stage; None without one."""
    later: float | None
    """Seconds that the later stages need at most; None if one of them never ran here."""
    started: float = field(default_factory=time.monotonic)

    def words(self, rest: float | None = None) -> str:
        """``stage 7 of 10, 3.2 min left for the whole run``; without the time if something is unknown.

        Args:
            rest: seconds that the stage still needs by its own rate, if it has one.
        """
        place = f"stage {self.place} of {self.stages}"
        if rest is None and self.known is not None:
            rest = max(0.0, self.known - (time.monotonic() - self.started))
        if rest is None or self.later is None:
            return place
        return f"{place}, {_in_words(rest + self.later)} left for the whole run"


def whole_run(name: str, values: Mapping[str, Any]) -> WholeRun | None:
    """The run of this stage; None if the stage is run by itself."""
    asked = os.environ.get(STAGES)
    if not asked:
        return None
    stages = _wanted(read_stages(), None if asked == ALL else asked.split(","))
    names = [stage.name for stage in stages]
    if name not in names:
        return None
    place, times = names.index(name), _times(Path.cwd())
    new = stages[place].outputs
    later = outdated(stages[place + 1 :], values, Path(), new)
    rest = [times.get(_key(stage, values)) for stage in later]
    unknown = any(seconds is None for seconds in rest)
    return WholeRun(
        place=place + 1,
        stages=len(stages),
        known=times.get(_key(stages[place], values)),
        later=None if unknown else sum(seconds or 0.0 for seconds in rest),
    )


def remember(stage: StageEntry, values: Mapping[str, Any], seconds: float) -> None:
    """Record how long a stage took from its beginning to its end; nothing is recorded if the disk is full."""
    file = _file(Path.cwd())
    with suppress(OSError):
        if file.parent.is_dir():
            line = json.dumps({"key": _key(stage, values), "seconds": round(seconds, 1)})
            with file.open("a", encoding="utf-8") as opened:
                opened.write(line + "\n")  # short enough to be written whole beside other runs


def _file(here: Path) -> Path:
    return (here.parents[1] if here.parent.name == FOLDER else here) / TIMES


def _times(here: Path) -> dict[str, float]:
    """The seconds of the last run for each key."""
    found: dict[str, float] = {}
    with suppress(OSError):
        for line in _file(here).read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, KeyError, TypeError):  # half a line of a killed stage
                row = json.loads(line)
                found[row["key"]] = float(row["seconds"])
    return found


def _key(stage: StageEntry, values: Mapping[str, Any]) -> str:
    read = {key: _value(values, key) for key in stage.parameters if key != SEED}
    return f"{stage.name}-{content_key(read, [])}"


def _value(values: Mapping[str, Any], key: str) -> Any:
    return reduce(getitem, key.split("."), values)


def _wanted(stages: Sequence[StageEntry], targets: Sequence[str] | None) -> list[StageEntry]:
    """The targets and what they depend on, in the order of ``dvc.yaml``; all without targets."""
    if targets is None:
        return list(stages)
    makers = {output: stage for stage in stages for output in stage.outputs}
    by_name, found = {stage.name: stage for stage in stages}, set[str]()
    waiting = [name for name in targets if name in by_name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [makers[path].name for path in by_name[name].dependencies if path in makers]
    return [stage for stage in stages if stage.name in found]


def outdated(
    stages: Sequence[StageEntry], values: Mapping[str, Any], folder: Path, made_anew: Sequence[Path] = ()
) -> list[StageEntry]:
    """The stages that ``dvc.lock`` does not show to be up to date; changes of code and data do not count.

    Args:
        stages: in the order of ``dvc.yaml``.
        values: the resolved parameters.
        folder: the workspace; it need not exist.
        made_anew: outputs that an earlier stage is about to write.
    """
    file = folder / LOCK
    lock: Mapping[str, Any] = (read_yaml_file(file) or {}).get("stages", {}) if file.is_file() else {}
    made = {out["path"]: out.get("md5") for known in lock.values() for out in known.get("outs", [])}
    new, found = set(made_anew), []
    for stage in stages:
        known = lock.get(stage.name)
        if (
            known is None
            or new & set(stage.dependencies)
            or any(made.get(dep["path"], dep.get("md5")) != dep.get("md5") for dep in known.get("deps", []))
            or not _same_parameters(known.get("params", {}).get("params.yaml", {}), stage, values)
            or not all((folder / output).exists() for output in stage.outputs)
        ):
            found.append(stage)
            new |= set(stage.outputs)
    return found


def _same_parameters(locked: Mapping[str, Any], stage: StageEntry, values: Mapping[str, Any]) -> bool:
    known = with_present_keys(locked, str(LOCK))
    return all(known.get(key) == _value(values, key) for key in stage.parameters)


def _in_words(seconds: float) -> str:
    """Text such as ``3 h 05 min``, ``4 min`` or ``20 s``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
