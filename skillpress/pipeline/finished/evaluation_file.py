"""Reads results/evaluation.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_json
from skillpress.learn.training.keeping.selected_checkpoint import SelectedCheckpoint

TABLES = ("policies", "comparisons")
"""The keys with an entry for each policy, and for each pair of policies."""


def read_evaluation(results: Path) -> dict[str, Any]:
    """The content of the file, if this version wrote it.

    Raises:
        StorageError: the file is missing or damaged.
    """
    values = read_json(results / "evaluation.json")
    parts = values if isinstance(values, dict) else {}
    if "checkpoint" not in parts or not all(isinstance(parts.get(part), dict) for part in TABLES):
        raise StorageError(
            f"{results / 'evaluation.json'}: not what the stage evaluate_policy writes here; run it again"
        )
    return parts


def checkpoint(results: Path) -> SelectedCheckpoint:
    """The training step whose weights the trained policy has, and the rule that chose it.

    Raises:
        StorageError: evaluation.json is missing or damaged.
    """
    values = read_evaluation(results)["checkpoint"]
    try:
        return SelectedCheckpoint(**values)
    except TypeError as error:
        raise StorageError(
            f"{results / 'evaluation.json'}: checkpoint is {values!r}, this version writes rule and step; "
            "let the stage evaluate_policy run again"
        ) from error
