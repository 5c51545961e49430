"""Parquet round trips, and files that are refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import datasets
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.errors import StorageError
from skillpress.trajectory import (
    STEP_COLUMNS,
    TRAJECTORY_COLUMNS,
    RewardPart,
    Step,
    Task,
    Trajectory,
    WeightSpan,
    read_rollouts,
    read_tasks,
    rollout_frame,
    scan_rollouts,
    write_rollouts,
    write_tasks,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
token_ids = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
logprobs = st.lists(st.floats(-50, 0, width=32), max_size=4).map(tuple)
parts = st.lists(
    st.builds(RewardPart, texts, st.floats(-10, 10), st.sampled_from(["step", "trajectory"])), max_size=3
).map(tuple)
spans = st.lists(
    st.builds(WeightSpan, st.integers(0, 2**31 - 1), st.integers(0, 9), st.integers(0, 9)), max_size=2
).map(tuple)
steps = st.builds(Step, token_ids, token_ids, logprobs, texts, texts, texts, st.none() | texts, parts, spans)
TASKS = [Task("a", "countdown", 7, {"target": 24, "numbers": [4, 6]}, "train", "3 numbers")]


def trajectory(played: list[Step], index: int) -> Trajectory:
    return Trajectory(
        task_id="a",
        group_id="trained/run-2/a",
        rollout_index=index,
        steps=tuple(played),
        won=True,
        terminated=True,
        truncated=False,
        outcome="won",
        policy_version=3,
        seed=2**62,
        first_observation="a cliff",
        policy="trained",
        run=2,
    )


@given(st.lists(st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=3))
def test_trajectories_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, played: list[list[Step]]
) -> None:
    path = tmp_path_factory.mktemp("rollouts") / "r.parquet"
    trajectories = [trajectory(steps, index) for index, steps in enumerate(played)]
    write_rollouts(path, trajectories)
    assert read_rollouts(path) == trajectories
    totals = scan_rollouts(path).select("reward").collect()["reward"].to_list()
    assert totals == [step.reward for steps in played for step in steps]
    assert scan_rollouts(path).select(pl.len()).collect().item() == sum(map(len, played))


def test_the_tables_of_columns_are_the_records_fields() -> None:
    """A field that no column stores would be lost, and one that no field takes could not be read."""
    stored = {name for name, column in STEP_COLUMNS.items() if column.read is not None}
    assert stored == {field.name for field in fields(Step)}
    assert {*TRAJECTORY_COLUMNS, "steps"} == {field.name for field in fields(Trajectory)}


def test_a_file_of_another_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    frame = rollout_frame([trajectory([Step((1,), (2,), (-1.0,), "", "go", "", None, ())], 0)])
    frame.write_parquet(path, metadata={"skillpress": "rollouts/2"})
    with pytest.raises(StorageError, match=r"schema is 'rollouts/2', this version reads rollouts/'3'.*rerun"):
        read_rollouts(path)


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
    with pytest.raises(StorageError, match=r"schema is 'none', this version reads tasks/'3'"):
        read_tasks(path)
    write_tasks(path, TASKS)
    with pytest.raises(StorageError, match="this version reads rollouts"):
        read_rollouts(path)
