"""The collector: every episode once, in order, none waiting for another, none sampled for in vain."""

from __future__ import annotations

import pytest
from walking import TASKS, Countdowner, Walker

from skillpress.rollout import Collector, SyncVectorEnv, requests


def collect(slots: int) -> tuple[Collector, Walker, list[tuple[str, int, bool, tuple[str, ...]]]]:
    walker = Walker()
    collector = Collector(SyncVectorEnv(Countdowner), walker, slots)
    trajectories = collector.collect(requests(TASKS, 3, 0, "test"), policy_version=5)
    assert {t.policy_version for t in trajectories} == {5}
    assert all(t.group_id == f"test/{t.task_id}" for t in trajectories), "a group is one task's rollouts"
    return collector, walker, [(t.task_id, t.rollout_index, t.won, t.actions) for t in trajectories]


def test_trajectories_come_in_the_order_requested_whatever_the_number_of_slots() -> None:
    one, four, many = (collect(slots)[2] for slots in (1, 4, 100))
    assert one == four == many
    assert [(task, index) for task, index, *_ in one] == [(t.task_id, i) for t in TASKS for i in range(3)]
    assert any(won for *_, won, _ in one) and not all(won for *_, won, _ in one)


@pytest.mark.parametrize("slots", [1, 4, 100])
def test_one_decision_per_environment_step_and_none_for_finished_episodes(slots: int) -> None:
    collector, walker, played = collect(slots)
    steps = sum(len(actions) for *_, actions in played)
    assert collector.statistics.decisions == collector.statistics.environment_steps == steps
    assert sum(walker.batches) == steps and max(walker.batches) <= slots
    assert collector.statistics.episodes == 18


def test_a_slot_that_falls_free_is_filled_at_once() -> None:
    _, walker, _ = collect(4)
    emptying = walker.batches.index(min(walker.batches))
    assert all(batch == 4 for batch in walker.batches[: emptying - 4])


def test_a_trajectory_records_what_was_sampled_and_how_it_ended() -> None:
    walker = Walker()
    (trajectory,) = Collector(SyncVectorEnv(Countdowner), walker, 1).collect(requests(TASKS[1:2], 1, 3, "x"))
    (step,) = trajectory.steps
    assert (step.response_ids, step.logprobs, step.thought, step.action) == ((1,), (-0.5,), "hm", step.action)
    assert step.action in ("WALK", "JUMP")
    assert trajectory.outcome == ("won" if trajectory.won else "timeout")
    assert trajectory.first_observation == "1", "O_0 of a task of one step"


def test_who_played_and_in_which_run_is_recorded() -> None:
    wanted = requests(TASKS[:1], 1, 0, "trained", "run-2", policy="trained", run=2)
    (trajectory,) = Collector(SyncVectorEnv(Countdowner), Walker(), 1).collect(wanted)
    assert (trajectory.policy, trajectory.run, trajectory.group_id) == ("trained", 2, "trained/run-2/t9")


def test_seeds_differ_between_rollouts_steps_and_places() -> None:
    here, there = requests(TASKS, 4, 0, "train", 1), requests(TASKS, 4, 0, "train", 2)
    assert len({request.seed for request in here + there}) == 48
    assert requests(TASKS, 4, 0, "train", 1) == here
