"""Which of a training run's weights a policy has: those after the last step, or those of the best.

The best of many flatters: the luckiest looks better than it is. So the rule is a parameter
(``training.keep``), it is written down beside the step that it chose, and stands in every table.
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
"""Metric of the training steps after which the validation tasks were played."""


@dataclass(frozen=True)
class SelectedCheckpoint:
    """The weights that a run left."""

    rule: Rule
    step: int
    """The training step after which they were the policy's; 0 are those of the start."""
    validation_success: float | None
    """Share of the validation tasks that they won; None where the rule did not ask."""


def select_checkpoint(rule: Rule, curve: Sequence[Mapping[str, float]]) -> SelectedCheckpoint:
    """What the rule chooses among the steps of a curve; of equally good ones the first.

    Args:
        curve: rows of metrics with ``step``, and with ``validation_success`` where that was measured.
    """
    if rule == "last" or not curve:
        return SelectedCheckpoint(rule, len(curve), None)
    best = max((row for row in curve if VALIDATION in row), key=lambda row: (row[VALIDATION], -row["step"]))
    return SelectedCheckpoint(rule, int(best["step"]), best[VALIDATION])


def write_selected(path: Path, selected: SelectedCheckpoint) -> None:
    """Write down which weights were left."""
    write_json(path, asdict(selected))


def read_selected(path: Path) -> SelectedCheckpoint:
    """What :func:`write_selected` wrote.

    Raises:
        StorageError: it is missing or damaged.
    """
    values = read_json(path)
    try:
        return SelectedCheckpoint(**values)
    except TypeError as error:
        message = f"{path}: does not say which checkpoint was selected ({error}); train again"
        raise StorageError(message) from error
