"""Parquet round trips, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import datasets
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.storage import StorageError
from skillpress.trajectory import (
    Step,
    Task,
    Trajectory,
    read_rollouts,
    read_tasks,
    scan_rollouts,
    write_rollouts,
    write_tasks,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
token_ids = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
logprobs = st.lists(st.floats(-50, 0, width=32), max_size=4).map(tuple)
steps = st.builds(
    Step, token_ids, token_ids, logprobs, texts, texts, texts, st.none() | texts, st.floats(-10, 10)
)
TASKS = [Task("a", "countdown", 7, {"target": 24, "numbers": [4, 6]}, "train", "3 numbers")]


def trajectory(played: list[Step], index: int) -> Trajectory:
    return Trajectory("a", "train/1", index, tuple(played), True, True, False, "won", 3, 2**62)


@given(st.lists(st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=3))
def test_trajectories_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, played: list[list[Step]]
) -> None:
    path = tmp_path_factory.mktemp("rollouts") / "r.parquet"
    trajectories = [trajectory(steps, index) for index, steps in enumerate(played)]
    write_rollouts(path, trajectories)
    assert read_rollouts(path) == trajectories
    assert scan_rollouts(path).select(pl.len()).collect().item() == sum(map(len, played))


def test_tasks_come_back_as_they_were_and_are_a_hugging_face_dataset(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_tasks(path, TASKS)
    assert read_tasks(path) == TASKS
    rows = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
    assert rows[0]["task_id"] == "a" and rows[0]["split"] == "train"


def test_a_missing_a_truncated_and_a_foreign_file_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(StorageError, match=r"t\.parquet: no such file"):
        read_tasks(path)
    write_tasks(path, TASKS)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(StorageError, match=r"t\.parquet: not a readable Parquet file"):
        read_tasks(path)
    pl.DataFrame({"task_id": ["a"]}).write_parquet(path)
    with pytest.raises(StorageError, match=r"schema is 'none', this version reads tasks/'1'"):
        read_tasks(path)
    write_tasks(path, TASKS)
    with pytest.raises(StorageError, match="this version reads rollouts"):
        read_rollouts(path)
