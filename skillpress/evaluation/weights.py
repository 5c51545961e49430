"""Which of a training run's weights a policy has: those after the last step, or those of the peak.

A peak flatters: the luckiest of many looks better than it is. So the rule is a parameter
(``training.keep``), it is written down beside the step that it chose, and stands in every table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from skillpress.storage import StorageError, read_json, write_json

Rule = Literal["last", "peak"]
VALIDATION = "validation_success"
"""Metric of the training steps after which the validation tasks were played."""


@dataclass(frozen=True)
class Kept:
    """The weights that a run left."""

    rule: Rule
    step: int
    """The training step after which they were the policy's; 0 are those of the start."""
    validation_success: float | None
    """Share of the validation tasks that they won; None where the rule did not ask."""


def kept(rule: Rule, curve: Sequence[Mapping[str, float]]) -> Kept:
    """What the rule chooses among the steps of a curve; of equal peaks the first.

    Args:
        curve: rows of metrics with ``step``, and with ``validation_success`` where that was measured.
    """
    if rule == "last" or not curve:
        return Kept(rule, len(curve), None)
    best = max((row for row in curve if VALIDATION in row), key=lambda row: (row[VALIDATION], -row["step"]))
    return Kept(rule, int(best["step"]), best[VALIDATION])


def write_kept(path: Path, found: Kept) -> None:
    """Write down which weights were left."""
    write_json(path, asdict(found))


def read_kept(path: Path) -> Kept:
    """What :func:`write_kept` wrote.

    Raises:
        StorageError: it is missing or damaged.
    """
    values = read_json(path)
    try:
        return Kept(**values)
    except TypeError as error:
        raise StorageError(f"{path}: does not say which weights were kept ({error}); train again") from error
