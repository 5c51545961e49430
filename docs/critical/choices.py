"""The four conditions under which a segmentation cost chooses reuse, for each benchmark's start policies.

``choices.json`` holds ``{benchmark: {seed: {...}}}``, as ``measure_choices.py`` measured it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from pydantic import Field, TypeAdapter, ValidationError

from skillpress.core.errors import StorageError
from skillpress.core.intervals import critical_value
from skillpress.core.sections import Section
from skillpress.core.storage import read_json

FILE = "choices.json"
DIFFER, INDIFFERENT, LENGTH = 0.5, 0.1, 0.7
"""What the conditions 1 to 3 ask for: half of the tasks, the reward below which predictions give no sign, and
the correlation from which length explains half of the variance."""
CELLS = (
    "equal", "shorter", "longer", "repeated", "repeated_short", "alike", "compressible", "noisy",
)  # fmt: skip
PUBLIC = {
    "countdown": ("study/countdown",),
    "wordle": ("wordle_smoke",),
    "cooking": ("study/cooking", "study/runs/cooking", "cooking_again/without_refusals"),
    "alfworld": ("study/alfworld", "study/runs/alfworld"),
}
"""Benchmarks of others to the overlays that make a start policy for them."""
OVERLAYS = {cell: ("workshop", "critical/runs", f"critical/{cell}") for cell in CELLS} | PUBLIC


class MeasuredChoice(Section):
    """A ``Choice`` of one start policy, and what turns segments into reward."""

    tasks: int
    won_twice: int
    differ: int
    deviation: float | None = Field(default=None)
    of_length: float | None = Field(default=None)
    of_others: float | None = Field(default=None)
    per_segment: float
    """Reward that a segment costs, λ/T; a success is worth 10."""


@dataclass(frozen=True)
class OverSeeds:
    """A mean over seeds and its 95% interval (Student); no interval from one seed."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Conditions:
    """The four conditions of docs/critical_experiment.md for a segmentation cost to choose reuse."""

    seeds: int
    tasks: int
    """Played by all start policies together."""
    won_twice: int
    differ: float | None
    """1: share of the tasks won twice whose wins cost differently; at least ``DIFFER``."""
    reward: float | None
    """2: the deviation of the penalty within a task, in units of reward; at least ``INDIFFERENT``."""
    length: OverSeeds | None
    """3: correlation of segments with length; below ``LENGTH`` with its interval."""
    others: OverSeeds | None
    """4: correlation of segments with those by other tasks' phrases; above 0 with its interval."""

    @property
    def verdict(self) -> str:
        """``yes``, ``no`` with the numbers of the conditions that fail, or ``cannot be told``."""
        if self.differ is None or self.reward is None or self.length is None or self.others is None:
            return "no: 1"
        low, high = self.others.low, self.length.high
        failed = [
            *(["1"] if self.differ < DIFFER else []),
            *(["2"] if self.reward < INDIFFERENT else []),
            *(["3"] if self.length.low is not None and self.length.low >= LENGTH else []),
            *(["4"] if self.others.high is not None and self.others.high <= 0 else []),
        ]
        if failed:
            return f"no: {', '.join(failed)}"
        if low is None or high is None:
            return "cannot be told"
        return "yes" if low > 0 and high < LENGTH else "cannot be told"


def conditions(found: Sequence[MeasuredChoice]) -> Conditions:
    """The conditions over the start policies of one benchmark."""
    twice = sum(one.won_twice for one in found)
    rewards = [one.deviation * one.per_segment for one in found if one.deviation is not None]
    return Conditions(
        seeds=len(found),
        tasks=sum(one.tasks for one in found),
        won_twice=twice,
        differ=sum(one.differ for one in found) / twice if twice else None,
        reward=mean(rewards) if rewards else None,
        length=_over_seeds([one.of_length for one in found if one.of_length is not None]),
        others=_over_seeds([one.of_others for one in found if one.of_others is not None]),
    )


def _over_seeds(values: Sequence[float]) -> OverSeeds | None:
    if not values:
        return None
    if len(values) == 1:
        return OverSeeds(values[0], None, None)
    middle, half = mean(values), critical_value(len(values)) * stdev(values) / sqrt(len(values))
    return OverSeeds(middle, middle - half, middle + half)


Choices = Mapping[str, Mapping[str, MeasuredChoice]]
"""Benchmark to seed to what was measured."""


def read_choices(folder: Path) -> Choices:
    """What is measured so far, empty if there is no file yet; ``StorageError`` for a wrong one."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return TypeAdapter(dict[str, dict[str, MeasuredChoice]]).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StorageError(
            f"{path}: {place}: {first['msg']}; docs/critical/measure_choices.py makes it"
        ) from error
