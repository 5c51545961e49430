"""The weights that a run leaves under each rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.training.loop.keeping.selected_checkpoint import (
    SelectedCheckpoint,
    read_selected,
    select_checkpoint,
    write_selected,
)

CURVE = [
    {"step": 1.0, "success": 0.9},
    {"step": 2.0, "success": 0.5, "validation_success": 0.4},
    {"step": 3.0, "success": 0.5},
    {"step": 4.0, "success": 0.6, "validation_success": 0.6},
    {"step": 5.0, "success": 0.6, "validation_success": 0.6},
]


def test_the_last_step_counts_whatever_was_measured() -> None:
    assert select_checkpoint("last", CURVE) == SelectedCheckpoint("last", 5, None)


def test_the_best_is_the_first_of_the_best_validated_steps_not_of_the_training_success() -> None:
    assert select_checkpoint("best", CURVE) == SelectedCheckpoint("best", 4, 0.6)
    assert select_checkpoint("best", CURVE[:3]) == SelectedCheckpoint("best", 2, 0.4)


@pytest.mark.parametrize("rule", ["last", "best"])
def test_without_training_the_start_is_kept(rule: str) -> None:
    assert select_checkpoint(rule, []) == SelectedCheckpoint(rule, 0, None)


def test_what_was_kept_is_read_back_and_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.json"
    write_selected(file, select_checkpoint("best", CURVE))
    assert read_selected(file) == select_checkpoint("best", CURVE)
    file.write_text(json.dumps({"rule": "last"}))
    with pytest.raises(StorageError, match=r"checkpoint\.json: does not say which checkpoint.*train again"):
        read_selected(file)
