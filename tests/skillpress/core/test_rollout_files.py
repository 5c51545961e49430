"""Round trips through Parquet, and files that are refused."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path

import datasets
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core import rollout_files, sequence_files
from skillpress.core.errors import StorageError
from skillpress.core.rollout_files import (
    STEP_COLUMNS,
    TRAJECTORY_COLUMNS,
    iterate_rollouts,
    join_rollouts,
    read_rollouts,
    rollout_frame,
    scan_rollouts,
    stretches,
    write_rollouts,
)
from skillpress.core.sequence_files import SEQUENCE_SCHEMA, scan_sequences, write_sequences
from skillpress.core.tables import PRIVATE, write_table
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import RewardPart, SkillSequence, Step, Summary, Task, Trajectory, WeightSpan

DATA = Path(__file__).with_name("data")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
token_ids = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
logprobs = st.lists(st.floats(-50, 0, width=32), max_size=4).map(tuple)
parts = st.lists(
    st.builds(RewardPart, texts, st.floats(-10, 10), st.sampled_from(["step", "trajectory"])), max_size=3
).map(tuple)
spans = st.lists(
    st.builds(WeightSpan, st.integers(0, 2**31 - 1), st.integers(0, 9), st.integers(0, 9)), max_size=2
).map(tuple)
steps = st.builds(
    Step, token_ids, token_ids, logprobs, texts, texts, texts, st.none() | texts, parts, spans,
    state_key=st.none() | texts, skills=st.none() | st.lists(texts, max_size=3).map(tuple),
    answer=st.none() | texts,
)  # fmt: skip
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
    """A field without a column would be lost, and a column without a field could not be read."""
    stored = {name for name, column in STEP_COLUMNS.items() if column.read is not None}
    assert stored == {field.name for field in fields(Step)} - {"plain_prompt_ids"}
    in_rows_of_their_own = {"steps", "summaries"}
    assert {*TRAJECTORY_COLUMNS, *in_rows_of_their_own} == {field.name for field in fields(Trajectory)}


def test_what_each_response_was_asked_for_comes_back_and_older_files_tell_actions_from_the_rest(
    tmp_path: Path,
) -> None:
    asked = Step((1,), (2,), (-1.0,), "", "", "", None, ())
    acting = [replace(asked, action="go", observation=seen) for seen in ("a wall", "a door")]
    reflection, summary = Summary(0, replace(asked, kind="reflection")), Summary(1, asked)
    played = replace(trajectory(acting, 0), summaries=(reflection, summary))
    path = tmp_path / "rollouts.parquet"
    write_rollouts(path, [played])
    assert read_rollouts(path) == [played]
    kinds = ["reflection", "action", "summary", "action"]
    assert scan_rollouts(path).collect()["kind"].to_list() == kinds
    rollout_frame([played]).drop("kind", "skills", "answer").write_parquet(
        path, metadata={"skillpress": "rollouts/4"}
    )
    (found,) = read_rollouts(path)
    assert [step.kind for step in found.decisions] == ["summary", "action", "summary", "action"]


def test_files_that_the_writers_before_several_skills_wrote_are_still_read() -> None:
    """Two steps and a summary of version 5, and two skill sequences with the labels of version 3."""
    (found,) = read_rollouts(DATA / "rollouts_5.parquet")
    assert found.actions == ("go", "look") and found.won and found.first_observation == "a door"
    assert [(step.kind, step.state_key, step.skills) for step in found.decisions] == [
        ("action", "place 0", None), ("summary", "place 2", None), ("action", "place 1", None),
    ]  # fmt: skip
    assert found.steps[1].prompt_ids == (1, 2, 1) and found.steps[1].weight_spans == (WeightSpan(4, 0, 1),)
    sequences = scan_sequences(DATA / "sequences_3.parquet").collect()
    assert sequences.schema == pl.Schema(SEQUENCE_SCHEMA)
    assert sequences.rows() == [("a", 0, True, ["Go", "Look"]), ("b", 1, False, [])]


def test_a_file_of_another_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    frame = rollout_frame([trajectory([Step((1,), (2,), (-1.0,), "", "go", "", None, ())], 0)])
    frame.write_parquet(path, metadata={"skillpress": "rollouts/2"})
    said = r"schema is 'rollouts/2', this version reads rollouts/'6'; make it again"
    with pytest.raises(StorageError, match=said):
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
    with pytest.raises(StorageError, match=r"not a table of skillpress \(its columns are task_id\)"):
        read_tasks(path)
    write_tasks(path, TASKS)
    with pytest.raises(StorageError, match="holds tasks, and rollouts are wanted; name a file of rollouts"):
        read_rollouts(path)


def test_a_file_of_another_kind_is_never_to_be_deleted(tmp_path: Path) -> None:
    """It may be the user's only copy of something else."""
    path = tmp_path / "t.parquet"
    for write in (
        lambda: path.write_text("mine"),
        lambda: pl.DataFrame({"a": [1]}).write_parquet(path),
        lambda: write_tasks(path, TASKS),
        lambda: rollout_frame([]).write_parquet(path, metadata={"skillpress": "rollouts/2"}),
        path.unlink,
        path.mkdir,
    ):
        write()
        with pytest.raises(
            StorageError, match=r"t\.parquet: .*(name a file of rollouts|make it again)"
        ) as error:
            read_rollouts(path)
        assert "delete" not in str(error.value)


def walks(lengths: list[int]) -> list[Trajectory]:
    step = Step((1, 2), (3,), (-0.5,), "a thought", "go", "a cliff", None, (RewardPart("s", 1.0, "step"),))
    return [trajectory([step] * length, index) for index, length in enumerate(lengths)]


@given(st.lists(st.integers(1, 6), max_size=8), st.integers(1, 9), st.integers(0, 7))
def test_stretches_are_the_files_rows_in_order_and_divide_no_trajectory(
    lengths: list[int], held: int, kept: int
) -> None:
    frame = rollout_frame(walks(lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollout_files, "ROW_GROUP", held)
        found = list(stretches(frame.lazy(), ["rollout_index"], pl.col("rollout_index") >= kept))
    assert pl.concat(found).equals(frame.filter(pl.col("rollout_index") >= kept))
    of_each = [set(part["rollout_index"]) for part in found]
    assert sum(map(len, of_each)) == len(set().union(*of_each))
    assert all(part.height <= held + 2 * max(lengths, default=0) for part in found)


def test_trajectories_are_read_one_after_the_other_with_or_without_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout_files, "ROW_GROUP", 4)
    played = walks([3, 9, 1, 2])
    write_rollouts(tmp_path / "r.parquet", played)
    assert list(iterate_rollouts(tmp_path / "r.parquet")) == played
    bare = list(iterate_rollouts(tmp_path / "r.parquet", pl.col("rollout_index") > 1, tokens=False))
    assert [(t.rollout_index, t.actions) for t in bare] == [(2, ("go",)), (3, ("go", "go"))]
    assert {step.prompt_ids + step.response_ids for t in bare for step in t.steps} == {()}


def test_a_trajectory_whose_steps_do_not_stand_together_is_an_error(tmp_path: Path) -> None:
    frame = rollout_frame(walks([2, 2]))
    write_table(tmp_path / "r.parquet", frame[[0, 2, 1, 3]], "rollouts")
    with pytest.raises(StorageError, match=r"r\.parquet: the 1 rows of task_id a, .* make it again"):
        list(iterate_rollouts(tmp_path / "r.parquet"))


@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_sequences_are_written_a_few_at_a_time_to_the_same_bytes(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_files, "SEQUENCES_HELD", 5)
    sequences = [SkillSequence("a", n, n % 2 == 0, ("x",) * (n % 3)) for n in range(count)]
    rows = [(s.task_id, s.rollout_index, s.won, s.skills) for s in sequences]
    at_once = pl.DataFrame(rows, schema=SEQUENCE_SCHEMA, orient="row")
    write_sequences(tmp_path / "s.parquet", iter(sequences))
    write_table(tmp_path / "whole.parquet", at_once, "sequences")
    assert scan_sequences(tmp_path / "s.parquet").collect().equals(at_once)
    assert (tmp_path / "s.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.parquet", "whole.parquet"]


def test_no_other_user_can_read_what_agents_said(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_rollouts(tmp_path / "rollouts" / "a.parquet", [])
        join_rollouts(tmp_path / "rollouts" / "b.parquet", [tmp_path / "rollouts" / "a.parquet"])
        for kind in PRIVATE:
            write_table(tmp_path / "rollouts" / kind, pl.DataFrame({"said": ["a key"]}), kind)
        write_tasks(tmp_path / "tasks" / "test.parquet", TASKS)
    finally:
        os.umask(before)
    files = list((tmp_path / "rollouts").iterdir())
    assert len(files) == 2 + len(PRIVATE) and {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "rollouts").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "tasks" / "test.parquet").stat().st_mode & 0o777 == 0o644
