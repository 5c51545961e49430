"""The sample that a training leaves of its episodes: its groups, and the figures of each decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import read_rollouts, rollout_frame, scan_rollouts
from skillpress.core.trajectory import RewardPart, Summary, Trajectory
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import LEFT_OUT, TEACHES, Batch, batch_of
from skillpress.training.loop.describing.episode_sample import GROUPS, EpisodeSample, sampled_steps
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes, scan_advantages
from tests.support.episodes import made_step, made_trajectory
from tests.support.training.thread_ranks import on_ranks

KEY = ["task_id", "group_id", "rollout_index"]


def episode(task: str, rollout: int, reward: float, responses: Sequence[int] = (1, 1)) -> Trajectory:
    """An episode whose last decision is rewarded; ``responses`` are the numbers of tokens that each decision
    sampled."""
    last = len(responses) - 1
    steps = tuple(
        made_step(
            prompt_ids=(1,),
            response_ids=(2,) * tokens,
            logprobs=(-1.0,) * tokens,
            action=f"go {number}",
            reward_parts=(
                RewardPart("success", reward * (number == last), "trajectory"),
                RewardPart("tidy", 0.25, "step"),
            ),
        )
        for number, tokens in enumerate(responses)
    )
    return made_trajectory(steps, reward > 0, task_id=task, group_id=f"train/1/{task}", rollout_index=rollout)


def group(task: str, *rewards: float) -> list[Trajectory]:
    return [episode(task, rollout, reward) for rollout, reward in enumerate(rewards)]


def collected(played: Sequence[Trajectory], teaching: Sequence[Trajectory] | None = None) -> Batch:
    """Played episodes, of which ``teaching`` teach (None: all)."""
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(each.group_id, len(numbers)) for each in played]
    roles = [TEACHES if teaching is None or each in teaching else LEFT_OUT for each in played]
    return replace(batch_of(played, groups, 10.0, 4), role=np.array(roles))


def taken(
    folder: Path,
    played: Sequence[Trajectory],
    teaching: Sequence[Trajectory] | None = None,
    advantages: np.ndarray | None = None,
    ranks: Ranks = Ranks(),  # noqa: B008
) -> TrainedEpisodes:
    """The sample of a training of one step; advantages are 0, 1, 2 ... by default."""
    found = collected(played, teaching)
    batch = found.teaching
    batch = replace(batch, penalty=batch.won * 2.0, segments=batch.won * 3.0)
    given = np.arange(float(len(batch.tokens))) if advantages is None else advantages
    sample = EpisodeSample(ResumeStore(folder, "key"), [1], ranks)
    sample.take(1, found, batch, given)
    into = TrainedEpisodes(folder / "training.parquet", folder / "training_advantages.parquet")
    if ranks.rank == 0:
        sample.write(into)
    return into


@given(st.integers(0, 1000))
def test_at_most_ten_steps_leave_groups_evenly_spaced_from_the_first_to_the_last(steps: int) -> None:
    found = sampled_steps(steps)
    assert len(found) == min(steps, 10)
    if found:
        assert found[0] == 1 and found[-1] == steps
        gaps = np.diff(found)
        assert not len(gaps) or (gaps.min() >= 1 and gaps.max() - gaps.min() <= 1)


def test_the_groups_whose_returns_differ_most_are_left_whole(tmp_path: Path) -> None:
    same = [group(f"same-{number}", 10.0, 10.0) for number in range(GROUPS)]
    varied = [group(f"varied-{number}", 0.0, 5.0 + number) for number in range(GROUPS)]
    played = [each for pair in zip(same, varied, strict=True) for part in pair for each in part]
    files = taken(tmp_path, played)
    assert read_rollouts(files.rollouts) == [each for part in varied for each in part]


def test_the_two_files_have_the_same_rows_in_the_same_order(tmp_path: Path) -> None:
    asked = replace(episode("b", 0, 1.0).steps[0], action="", thought="so far so good")
    summed_up = replace(episode("b", 0, 1.0), summaries=(Summary(1, asked),))
    played = [summed_up, episode("b", 1, 0.0), *group("a", 0.0, 10.0)]
    files = taken(tmp_path, played)
    rollouts, lessons = scan_rollouts(files.rollouts).collect(), scan_advantages(files.advantages).collect()
    assert rollouts[KEY].equals(lessons[KEY]) and rollouts.equals(rollout_frame(played))
    assert lessons["decision"].to_list() == [0, 1, 2, 0, 1, 0, 1, 0, 1], "a summary is a decision"
    assert rollouts["step"].to_list() == [0, 1, 1, 0, 1, 0, 1, 0, 1]
    assert lessons["advantage"].to_list() == list(range(9)), "in the order of the batch"


def test_an_episodes_rows_say_what_it_was_judged_by(tmp_path: Path) -> None:
    files = taken(tmp_path, group("a", 10.0, 0.0))
    lessons = (
        scan_advantages(files.advantages).select("return", "penalty", "segments").unique(maintain_order=True)
    )
    # two decisions have their own reward of 0.25 each
    assert lessons.collect().rows() == [(10.0 + 0.5 - 2.0, 2.0, 3.0), (0.5, 0.0, 0.0)]


def test_an_episode_that_was_left_out_stays_in_its_group_without_an_advantage(tmp_path: Path) -> None:
    played = [*group("a", 0.0, 10.0, 5.0), *group("left out", 0.0, 10.0)]
    files = taken(tmp_path, played, teaching=[played[0], played[2]])
    lessons = scan_advantages(files.advantages).collect()
    assert lessons["task_id"].unique().to_list() == ["a"], "nothing of the other group taught"
    assert lessons["rollout_index"].to_list() == [0, 0, 1, 1, 2, 2]
    assert lessons["selected"].to_list() == [True, True, False, False, True, True]
    assert lessons["advantage"].to_list() == [0.0, 1.0, None, None, 2.0, 3.0]
    left = lessons.filter(~pl.col("selected")).select("return", "penalty", "segments")
    assert left.unique().rows() == [(None, None, None)]


def test_an_advantage_per_token_is_shown_by_its_mean_over_the_response(tmp_path: Path) -> None:
    played = [episode("a", 0, 1.0, responses=(3, 1, 0)), episode("a", 1, 0.0, responses=(2,))]
    advantages = np.array([[1.0, 2.0, 6.0], [4.0, 99.0, 99.0], [99.0, 99.0, 99.0], [-1.0, -2.0, 99.0]])
    files = taken(tmp_path, played, advantages=advantages)
    found = scan_advantages(files.advantages).collect()["advantage"].to_list()
    assert found == [3.0, 4.0, None, -1.5], "nothing was sampled where the prompt did not fit"


def test_two_processes_leave_the_groups_that_differ_most_of_both(tmp_path: Path) -> None:
    shares = [
        [*group("a", 0.0, 9.0), *group("b", 0.0, 1.0), *group("c", 0.0, 8.0), *group("d", 0.0, 7.0)],
        [*group("e", 0.0, 2.0), *group("f", 0.0, 6.0), *group("g", 0.0, 1.0), *group("h", 3.0, 3.0)],
    ]
    files = on_ranks(2, lambda ranks: taken(tmp_path, shares[ranks.rank], ranks=ranks))
    tasks = [each.task_id for each in read_rollouts(files[0].rollouts)]
    assert tasks == ["a", "a", "c", "c", "d", "d", "f", "f"]
    lessons = scan_advantages(files[0].advantages).collect()
    assert lessons["advantage"].to_list() == [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7]


def test_a_step_that_taught_nothing_leaves_no_row_and_a_step_made_again_the_same_bytes(
    tmp_path: Path,
) -> None:
    files = taken(tmp_path, group("a", 0.0, 1.0), teaching=[])
    assert read_rollouts(files.rollouts) == [] and scan_advantages(files.advantages).collect().is_empty()
    first = [taken(tmp_path, group("a", 0.0, 1.0)).rollouts.read_bytes() for _ in range(2)]
    assert first[0] == first[1]


def test_a_training_without_steps_leaves_files_without_rows(tmp_path: Path) -> None:
    files = TrainedEpisodes(tmp_path / "training.parquet", tmp_path / "training_advantages.parquet")
    EpisodeSample(ResumeStore(tmp_path, "key"), sampled_steps(0), Ranks()).write(files)
    assert read_rollouts(files.rollouts) == [] and scan_advantages(files.advantages).collect().is_empty()


def test_a_part_that_is_gone_is_named(tmp_path: Path) -> None:
    files = TrainedEpisodes(tmp_path / "training.parquet", tmp_path / "training_advantages.parquet")
    with pytest.raises(StorageError, match=r"key/training-00000001\.parquet: no such file"):
        EpisodeSample(ResumeStore(tmp_path, "key"), [1], Ranks()).write(files)
