"""The index of a rollout file compared with its trajectories, read one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core import rollout_files as on_disk
from skillpress.core.errors import StorageError
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, read_rollouts, rollout_frame, write_rollouts
from skillpress.core.trajectory import RewardPart, Trajectory
from skillpress.reports.viewer.index import joined, open_rollouts
from skillpress.training.loop.describing.trained_episodes import ADVANTAGE_SCHEMA, TrainedEpisodes
from tests.support.reports.viewer_samples import ordinary, tasks

SOME = ordinary(seed=1, count=3, rollouts=3)


def reason(trajectory: Trajectory) -> str | None:
    """Computed from the steps, one by one."""
    if trajectory.won:
        return None
    wrong = Counter(step.invalid for step in trajectory.steps if step.invalid is not None)
    return min(wrong, key=lambda name: (-wrong[name], name)) if wrong else trajectory.outcome


@pytest.mark.parametrize("rows_read_together", [1, 3, 1000])
def test_the_index_has_a_row_for_every_trajectory_in_its_order(
    rows_read_together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rollouts(tmp_path / "some.parquet", SOME)
    monkeypatch.setattr(on_disk, "ROW_GROUP", rows_read_together)
    found = open_rollouts(tmp_path / "some.parquet").episodes
    assert found.select(pl.exclude("rows", "first_row", "reward", "advantage")).rows(named=True) == [
        {
            "steps": len(each.steps),
            "task": each.task_id,
            "group": each.group_id,
            "policy": each.policy,
            "run": each.run,
            "rollout": each.rollout_index,
            "version": each.policy_version,
            "won": each.won,
            "outcome": each.outcome,
            "invalid": sum(step.invalid is not None for step in each.steps),
            "reason": reason(each),
        }
        for each in read_rollouts(tmp_path / "some.parquet")
    ]
    assert found["reward"].to_list() == pytest.approx([each.total_reward for each in SOME])


@settings(max_examples=20)
@given(st.permutations(range(len(SOME))))
def test_an_episode_is_read_by_the_place_of_its_rows(order: Sequence[int]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.parquet"
        write_rollouts(path, [SOME[number] for number in order])
        index = open_rollouts(path)
        for place, number in enumerate(order):
            assert index.rows(place, list(ROLLOUT_SCHEMA)).equals(rollout_frame([SOME[number]]))


def test_a_file_without_episodes_has_an_empty_index(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "none.parquet", [])
    assert open_rollouts(tmp_path / "none.parquet").episodes.height == 0


def test_a_reward_that_is_no_number_is_none(tmp_path: Path) -> None:
    step = replace(SOME[0].steps[0], reward_parts=(RewardPart("odd", float("nan"), "step"),))
    write_rollouts(tmp_path / "odd.parquet", [replace(SOME[0], steps=(step,), summaries=())])
    assert open_rollouts(tmp_path / "odd.parquet").episodes["reward"].to_list() == [None]


def test_a_file_that_was_replaced_is_not_read_by_old_places(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    write_rollouts(path, SOME)
    index = open_rollouts(path)
    write_rollouts(path, SOME[1:])
    with pytest.raises(StorageError, match="has changed since it was opened"):
        index.rows(0, ["action"])


def test_tasks_tell_split_and_stratum_and_unknown_ones_none(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "some.parquet", SOME)
    index = open_rollouts(tmp_path / "some.parquet")
    known = {task.task_id: task for task in tasks()[:2]}
    found = joined([index, index], [known, {}])
    assert found["source"].to_list() == [0] * len(SOME) + [1] * len(SOME)
    assert found["number"].to_list() == [*range(len(SOME))] * 2
    told = [known[each.task_id].stratum if each.task_id in known else None for each in SOME]
    assert found["stratum"].to_list() == told + [None] * len(SOME)


def trained(folder: Path, advantages: Sequence[float | None]) -> TrainedEpisodes:
    rows = rollout_frame(SOME).select("task_id", "group_id", "rollout_index")
    lessons = rows.with_columns(advantage=pl.Series(advantages, dtype=pl.Float64))
    empty = [pl.lit(None, kind).alias(n) for n, kind in ADVANTAGE_SCHEMA.items() if n not in lessons.columns]
    files = TrainedEpisodes(folder / "training.parquet", folder / "training_advantages.parquet")
    files.write(SOME, lessons.with_columns(empty).select(list(ADVANTAGE_SCHEMA)))
    return files


def test_an_episodes_advantage_is_the_mean_over_its_decisions(tmp_path: Path) -> None:
    decisions = [len(each.decisions) for each in SOME]
    values = [None if place % 5 == 0 else float(place) for place in range(sum(decisions))]
    files = trained(tmp_path, values)
    index = open_rollouts(files.rollouts, files.advantages)
    place = 0
    for count, found in zip(decisions, index.episodes["advantage"], strict=True):
        known = [value for value in values[place : place + count] if value is not None]
        assert found == (pytest.approx(sum(known) / len(known)) if known else None)
        place += count


def test_advantages_of_other_rows_are_refused(tmp_path: Path) -> None:
    files = trained(tmp_path, [0.0] * sum(len(each.decisions) for each in SOME))
    write_rollouts(files.rollouts, SOME[::-1])
    with pytest.raises(StorageError, match=r"training_advantages.parquet: its rows are not those of"):
        open_rollouts(files.rollouts, files.advantages)
