"""Which weights a training run leaves: those after the last step, or those after the best.

The best of many measurements is too optimistic: part of it is luck. So the rule is a parameter
(``training.keep``), and it is recorded with the chosen step and shown in every table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json, write_json

Rule = Literal["last", "best"]
VALIDATION = "validation_success"
"""Metric name; only training steps after which the validation tasks were played have it."""


@dataclass(frozen=True)
class SelectedCheckpoint:
    """The weights that a run left."""

    rule: Rule
    step: int
    """The training step after which the policy had these weights; 0 means the start policy."""
    validation_success: float | None
    """Share of the validation tasks that these weights won; None if the rule does not use it."""


def select_checkpoint(rule: Rule, curve: Sequence[Mapping[str, float]]) -> SelectedCheckpoint:
    """The step of a curve that the rule chooses; the first of equally good ones. Rows of the curve have
    ``step``, and ``validation_success`` where it was measured."""
    if rule == "last" or not curve:
        return SelectedCheckpoint(rule, len(curve), None)
    best = max((row for row in curve if VALIDATION in row), key=lambda row: (row[VALIDATION], -row["step"]))
    return SelectedCheckpoint(rule, int(best["step"]), best[VALIDATION])


def write_selected(path: Path, selected: SelectedCheckpoint) -> None:
    """Record which weights the run left."""
    write_json(path, asdict(selected))


def read_selected(path: Path) -> SelectedCheckpoint:
    """Read the record of :func:`write_selected`.

    Raises:
        StorageError: it is missing or damaged.
    """
    values = read_json(path)
    try:
        return SelectedCheckpoint(**values)
    except TypeError as error:
        message = f"{path}: does not say which checkpoint was selected ({error}); train again"
        raise StorageError(message) from error
