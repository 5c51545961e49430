"""Which groups are replayed, what the files hold, and which files are deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore
from skillpress.core.trajectory import RewardPart, Step, Task, Trajectory, WeightSpan
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import REPLAYED, Batch, batch_of
from skillpress.training.loop.replay import ReplayBuffer
from tests.support.episodes import made_step, made_trajectory
from tests.support.training.thread_ranks import on_ranks

GROUPS, SIZE = 4, 2
"""Number of a step's new groups over all processes, and of rollouts in each."""
TASKS = {f"t{number}": Task(f"t{number}", "countdown", number, {}) for number in range(GROUPS)}


def decision(prompt: int, number: int = 0) -> Step:
    return made_step(
        prompt_ids=(prompt, 2),
        response_ids=(3, 4),
        logprobs=(-0.5, -0.25),
        thought=f"I think {prompt}",
        action=f"act {prompt}",
        observation="seen",
        reward_parts=(RewardPart("success", float(number), "trajectory"),),
        weight_spans=(WeightSpan(number, 0, 2),),
    )


def collected(step: int, lag: int = 0, ranks: Ranks = Ranks()) -> Batch:  # noqa: B008
    """This process's share of a step's new groups."""
    both = [(number, index) for number in ranks.share(GROUPS) for index in range(SIZE)]
    played = [
        made_trajectory(
            (decision(10 * step + index, step), decision(10 * step + index + 5, step)),
            won=True,
            task_id=f"t{number}",
            group_id=f"train/{step}/t{number}",
            rollout_index=index,
            policy_version=step - 1 - lag,
            seed=number,
            first_observation="O_0",
        )
        for number, index in both
    ]
    groups = [row // SIZE for row in range(len(played))]
    return batch_of(played, groups, 10.0, 4, [TASKS[f"t{number}"] for number, _ in both])


def buffer(
    folder: Path,
    groups: int = 3,
    staleness: int = 2,
    seed: int = 0,
    ranks: Ranks = Ranks(),  # noqa: B008
) -> ReplayBuffer:
    store = ResumeStore(folder, "key").of_rank(ranks.rank)
    return ReplayBuffer(store=store, tasks=TASKS, groups=groups, staleness=staleness, seed=seed, ranks=ranks)


def replayed(batch: Batch) -> list[Trajectory]:
    return batch.played_as(REPLAYED)


def test_the_first_step_has_nothing_to_replay_and_the_second_replays_the_first_as_it_was(
    tmp_path: Path,
) -> None:
    keeping, first = buffer(tmp_path, groups=GROUPS), collected(1)
    batch, metrics = keeping(1, first)
    assert batch is first and metrics == {"replay/groups": 0.0}
    second = collected(2)
    batch, metrics = keeping(2, second)
    assert metrics == {"replay/groups": float(GROUPS)}
    assert batch.episodes == second.episodes + first.episodes, "every token and number of them"
    assert batch.tasks == (second.tasks or ()) + (first.tasks or ())
    numbers = [number for number in range(8) for _ in range(2)]
    assert batch.group.tolist() == numbers, "groups of their own"
    assert (batch.new, len(replayed(batch))) == (8, 8)


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 1), st.integers(0, 3), st.sampled_from([1, 2, 4]))
def test_whole_groups_are_drawn_that_are_young_enough_and_the_same_for_any_number_of_processes(
    tmp_path_factory: pytest.TempPathFactory, groups: int, staleness: int, lag: int, seed: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("replay")
    alone = buffer(folder / "alone", groups, staleness, seed)
    for step in range(1, 6):
        batch, metrics = alone(step, collected(step, lag))
        again = replayed(batch)
        young = min(step - 1, max(staleness - lag, 0)) * GROUPS
        assert metrics["replay/groups"] == min(groups, young) == len(again) / SIZE
        assert len({(each.group_id, each.rollout_index) for each in again}) == len(again)
        assert all(0 < step - 1 - each.policy_version <= staleness for each in again)
        assert all(each.group_id.split("/")[1] != str(step) for each in again)

        parts = on_ranks(
            size,
            lambda ranks, step=step: buffer(folder / "shared", groups, staleness, seed, ranks)(
                step, collected(step, lag, ranks)
            ),
        )
        drawn = sorted(each.group_id for part, _ in parts for each in replayed(part))
        assert drawn == sorted(each.group_id for each in again)
        assert all(said == metrics for _, said in parts)


def test_all_that_is_young_enough_is_drawn_sooner_or_later_and_another_seed_draws_others(
    tmp_path: Path,
) -> None:
    drawn: dict[int, list[str]] = {}
    for seed in range(12):
        keeping = buffer(tmp_path / str(seed), groups=1, seed=seed)
        for step in (1, 2, 3):
            batch, _ = keeping(step, collected(step))
        drawn[seed] = [each.group_id for each in replayed(batch)]
    groups = {group for each in drawn.values() for group in each}
    assert len(groups) > 4 and {group.split("/")[1] for group in groups} == {"1", "2"}


def test_after_a_checkpoint_all_is_forgotten_that_nobody_can_replay_and_no_more(tmp_path: Path) -> None:
    """A run that resumes from the checkpoint of step 4 draws the same groups as before, and the same as a run
    that deletes nothing. Groups of steps 1 and 2 are too old for step 5."""
    keeping = buffer(tmp_path / "whole")
    whole = [keeping(step, collected(step))[0].episodes for step in range(1, 8)]
    resumed = buffer(tmp_path / "resumed")
    for step in range(1, 7):
        resumed(step, collected(step))
    resumed.forget(4)
    assert [number for number, _ in resumed.store.parts("replay")] == [3, 4, 5, 6]
    assert [resumed(step, collected(step))[0].episodes for step in (5, 6, 7)] == whole[4:]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    keeping = buffer(tmp_path)
    keeping(1, collected(1))
    keeping.store.part("replay", 1).unlink()
    with pytest.raises(StorageError, match=r"replay-00000001\.parquet: missing.*delete .*/key to start"):
        keeping(2, collected(2))
