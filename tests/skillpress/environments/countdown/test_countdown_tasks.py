"""Puzzles: the generator's own, each once, in splits that never overlap."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.rules import solutions
from skillpress.environments.countdown.tasks import check_tasks, generator, make_tasks
from skillpress.environments.section import SplitSizes

SIZES = SplitSizes(train=120, validation=20, test=30)


@pytest.fixture(scope="module")
def tasks(parameters: CountdownParameters) -> list[Task]:
    return list(make_tasks(parameters, SIZES, seed=7))


def test_items_are_those_of_reasoning_gym_word_for_word(parameters: CountdownParameters) -> None:
    import reasoning_gym

    upstream = reasoning_gym.create_dataset(
        "countdown", min_numbers=3, max_numbers=4, min_value=1, max_value=100,
        min_target=10, max_target=999, size=200, seed=12345,
    )  # fmt: skip
    ours = generator(parameters, 12345)
    for index in range(200):
        expected, found = upstream[index], ours[index]
        assert found["question"] == expected["question"]
        assert found["metadata"]["numbers"] == expected["metadata"]["numbers"]
        assert found["metadata"]["target"] == expected["metadata"]["target"]


def test_every_split_is_filled_with_solvable_puzzles_of_the_section(
    parameters: CountdownParameters, tasks: list[Task]
) -> None:
    assert [sum(t.split == s for t in tasks) for s in ("train", "validation", "test")] == [120, 20, 30]
    for task in tasks:
        target, numbers = task.spec["target"], task.spec["numbers"]
        assert 10 <= target <= 999
        assert len(numbers) in (3, 4)
        ways = len(solutions(tuple(sorted(numbers)), target, 999))
        assert task.spec["solutions"] == ways >= 1
        assert task.stratum.startswith(f"{len(numbers)} numbers, ")
    check_tasks(tasks)


def test_unseen_puzzles_have_more_numbers_and_change_no_other_split(
    parameters: CountdownParameters, tasks: list[Task]
) -> None:
    section = parameters.model_copy(update={"unseen_numbers": 5})
    made = list(make_tasks(section, dataclasses.replace(SIZES, unseen=6), seed=7))
    check_tasks(made)
    assert made[: len(tasks)] == tasks
    unseen = made[len(tasks) :]
    assert [task.split for task in unseen] == ["unseen"] * 6
    for task in unseen:
        target, numbers = task.spec["target"], task.spec["numbers"]
        assert len(numbers) == 5 and task.stratum.startswith("5 numbers, ")
        assert task.spec["solutions"] == len(solutions(tuple(sorted(numbers)), target, 999)) >= 1


def test_a_puzzle_keeps_its_split_whatever_the_sizes_and_seed(
    parameters: CountdownParameters, tasks: list[Task]
) -> None:
    tiny = CountdownParameters(
        name="countdown", max_steps=30, min_numbers=2, max_numbers=2, min_target=10, max_target=100
    )
    one = {t.task_id: t.split for t in make_tasks(tiny, SplitSizes(300, 50, 50), 1)}
    two = {t.task_id: t.split for t in make_tasks(tiny, SplitSizes(200, 60, 40), 2)}
    shared = one.keys() & two.keys()
    assert len(shared) > 10
    assert all(one[name] == two[name] for name in shared)


def test_tasks_come_lazily(parameters: CountdownParameters) -> None:
    first = list(itertools.islice(make_tasks(parameters, SplitSizes(10**9, 10**9, 10**9), 0), 5))
    assert len(first) == 5


def test_tasks_with_fewer_solutions_than_asked_for_are_dropped(parameters: CountdownParameters) -> None:
    many = parameters.model_copy(update={"min_solutions": 10})
    assert all(task.spec["solutions"] >= 10 for task in make_tasks(many, SplitSizes(30, 4, 4), 0))


def test_sizes_out_of_reach_are_refused_with_what_is_missing(
    parameters: CountdownParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are about 60 pairs that make 100, and the generator gives up on most items."""
    monkeypatch.setattr("skillpress.environments.countdown.tasks._PATIENCE", 200)
    few = parameters.model_copy(
        update={"min_numbers": 2, "max_numbers": 2, "min_target": 100, "max_target": 100}
    )
    with pytest.raises(TaskError, match=r"still missing 9\d+ of train.*fewer tasks"):
        list(make_tasks(few, SplitSizes(1000, 1, 1), 0))


def test_overlapping_splits_are_refused_naming_the_puzzle(make_task) -> None:
    good = [make_task(54, 80, 2, 28, 1), make_task(54, 80, 2, 28, 3, split="test")]
    check_tasks(good)
    shuffled = make_task(54, 1, 28, 2, 80, split="test")
    with pytest.raises(TaskError, match="splits overlap: puzzle 54=1,2,28,80 is in train and in test"):
        check_tasks([*good, shuffled])


def test_repeated_foreign_and_malformed_tasks_are_refused(make_task) -> None:
    task = make_task(54, 80, 2, 28, 1)
    with pytest.raises(TaskError, match="1 tasks repeat a puzzle"):
        check_tasks([task, task])
    with pytest.raises(TaskError, match="belongs to 'alfworld'"):
        check_tasks([dataclasses.replace(task, environment="alfworld")])
    with pytest.raises(TaskError, match="no target and numbers"):
        check_tasks([dataclasses.replace(task, spec={"target": "54", "numbers": [1, 2]})])
