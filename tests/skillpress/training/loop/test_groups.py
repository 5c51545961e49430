"""The tasks and seeds of a step, and the tasks that replace groups that teach nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.chains import Pairs
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection import Collector, SyncVectorEnv
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.algorithm import Selection
from skillpress.training.algorithms.batch import Batch, batch_of
from skillpress.training.loop.groups import GroupCollector, further_groups, groups_of_step
from tests.support.rollouts.walking import TASKS, Countdowner, Walker
from tests.support.training.batches import GRPO, algorithm


def numbered(count: int) -> list[Task]:
    return [Task(str(number), "x", 0, {}) for number in range(count)]


@given(st.integers(1, 20), st.integers(1, 7), st.integers(0, 3))
def test_every_pass_visits_every_task_once_before_any_comes_again(
    count: int, per_step: int, seed: int
) -> None:
    tasks = numbered(count)
    visited = [
        group.task.task_id
        for step in range(1, 3 * count + 1)
        for group in groups_of_step(tasks, per_step, step, seed)
    ]
    for start in range(0, len(visited) - count + 1, count):
        assert len(set(visited[start : start + count])) == count


@given(st.integers(1, 12), st.integers(1, 30), st.integers(1, 4))
def test_a_task_that_comes_twice_in_a_step_is_two_groups_with_other_seeds(
    count: int, per_step: int, step: int
) -> None:
    groups = groups_of_step(numbered(count), per_step, step, 0)
    wanted = [request for group in groups for request in group.requests(3, 0, step)]
    assert len({request.seed for request in wanted}) == 3 * per_step
    assert len({request.group_id for request in wanted}) == per_step


def test_a_tasks_first_visit_is_seeded_by_step_task_and_rollout_alone() -> None:
    (group,) = groups_of_step(numbered(1), 1, 17, 5)
    wanted = group.requests(2, 5, 17)
    assert [request.seed for request in wanted] == [derive(5, "train", 17, "0", index) for index in (0, 1)]
    assert {request.group_id for request in wanted} == {"train/17/0"}


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 40))
def test_further_groups_are_tasks_not_yet_played_and_then_other_visits(
    count: int, per_step: int, more: int
) -> None:
    tasks = numbered(count)
    first = groups_of_step(tasks, per_step, 1, 0)
    further = list(islice(further_groups(tasks, first, 1, 0), more))
    played = [(group.task.task_id, group.visit) for group in [*first, *further]]
    assert len(set(played)) == len(played), "no group comes twice"
    fresh = count - len({group.task.task_id for group in first})
    assert all(group.visit == 0 for group in further[:fresh])
    assert further == list(islice(further_groups(tasks, first, 1, 0), more))


class Chosen(Selection):
    """Keeps what a function says."""

    refills: int
    keep: Callable[[Batch], np.ndarray]

    @property
    def most_refills(self) -> int:
        return self.refills

    def kept(self, batch: Batch, seed: int) -> np.ndarray:
        return self.keep(batch)


def collect(
    keep: Callable[[Batch], np.ndarray],
    groups: int,
    refills: int,
    ranks: Ranks = Ranks(),  # noqa: B008
) -> tuple[list[str], list[str], list[int]]:
    """(tasks that teach, tasks played, their groups), with two rollouts each; ``keep`` selects."""
    played, _ = GroupCollector(
        tasks=TASKS,
        collector=Collector(SyncVectorEnv(Countdowner), Walker(), 8),
        algorithm=algorithm(GRPO, select=Chosen(name="chosen", refills=refills, keep=keep)),
        longest_response=4,
        groups=groups,
        size=2,
        core_maximum=10.0,
        seed=0,
        ranks=ranks,
    )(1, 0)
    found = played.teaching
    assert found.tasks is not None
    assert [task.task_id for task in found.tasks] == [each.task_id for each in found.episodes]
    assert_equal(found, batch_of(found.episodes, found.group.tolist(), 10.0, 4, found.tasks))
    numbers = found.group.tolist()
    assert sorted(set(numbers)) == list(range(found.groups))
    return [task.task_id for task in found.tasks], [t.task_id for t in played.episodes], numbers


def assert_equal(one: Batch, other: Batch) -> None:
    """The batch joined from parts equals the batch of all their episodes."""
    if len(other.tokens):
        assert (one.parts.keys(), one.credit) == (other.parts.keys(), other.credit)
    for name, values in other.parts.items():
        np.testing.assert_array_equal(values, one.parts[name])
    for each in fields(Batch):
        mine, others = getattr(one, each.name), getattr(other, each.name)
        if isinstance(mine, Pairs):
            assert mine.rows == others.rows and mine.goes_on.tolist() == others.goes_on.tolist()
        elif isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, others, each.name)
        elif each.name not in ("parts", "credit"):
            assert mine == others, each.name


def everything(batch: Batch) -> np.ndarray:
    return np.ones(len(batch.group), bool)


def nothing(batch: Batch) -> np.ndarray:
    return np.zeros(len(batch.group), bool)


def test_without_a_selection_the_steps_groups_are_played_once() -> None:
    teaching, played, groups = collect(everything, 3, refills=5)
    assert teaching == played == [g.task.task_id for g in groups_of_step(TASKS, 3, 1, 0) for _ in range(2)]
    assert groups == [0, 0, 1, 1, 2, 2]


def test_dropped_groups_are_replaced_by_further_tasks_until_the_step_is_full() -> None:
    def long_ones(batch: Batch) -> np.ndarray:
        """Selects groups in which an episode takes more than 2 steps: t9, t7, t4 and t3."""
        longest = np.zeros(batch.group.max() + 1)
        np.maximum.at(longest, batch.group, batch.length)
        return (longest > 2)[batch.group]

    teaching, played, groups = collect(long_ones, 4, refills=10)
    assert len(set(groups)) == 4 and groups == sorted(groups)
    assert set(played) - set(teaching) <= {"t1", "t2"}
    first = [group.task.task_id for group in groups_of_step(TASKS, 4, 1, 0)]
    assert played[:8] == [name for name in first for _ in range(2)]


@pytest.mark.parametrize("refills", [0, 1, 3])
def test_refills_end_at_their_limit_and_a_step_may_have_nothing_to_learn_from(refills: int) -> None:
    teaching, played, _ = collect(nothing, 2, refills)
    assert teaching == [] and len(played) == 2 * 2 * (1 + refills)


def test_processes_play_different_tasks_in_place_of_theirs() -> None:
    shares = [collect(nothing, 2, 2, Ranks(rank, 2))[1] for rank in (0, 1)]
    assert [len(share) for share in shares] == [6, 6]
    assert not set(shares[0]) & set(shares[1])
