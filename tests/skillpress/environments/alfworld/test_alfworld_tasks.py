"""Which games become which tasks."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.games import TASK_TYPES
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.alfworld.tasks import check_tasks, make_tasks, spread
from skillpress.environments.section import SplitSizes

SMALL = SplitSizes(train=60, validation=12, test=24)


@pytest.fixture(scope="module")
def small(parameters: AlfworldParameters) -> list[Task]:
    return list(make_tasks(parameters, SMALL, 0))


def of(tasks: list[Task], split: str) -> list[Task]:
    return [task for task in tasks if task.split == split]


def test_splits_are_disjoint_and_as_large_as_asked(small: list[Task]) -> None:
    check_tasks(small)
    assert Counter(task.split for task in small) == {"train": 60, "validation": 12, "test": 24}
    assert len({task.task_id for task in small}) == 96
    assert all(task.task_id.startswith("train/") for task in small if task.split != "test")


def test_a_whole_test_is_every_official_game_once(parameters: AlfworldParameters) -> None:
    test = of(list(make_tasks(parameters, SplitSizes(1, 1, 274), 3)), "test")
    assert len({task.task_id for task in test}) == 274
    halves = Counter(task.stratum.split("/")[0] for task in test)
    assert halves == {"iid": 140, "ood": 134}
    assert {task.stratum.split("/")[1] for task in test} == set(TASK_TYPES)


def test_a_smaller_test_keeps_the_proportions(small: list[Task], parameters: AlfworldParameters) -> None:
    whole = Counter(t.stratum for t in of(list(make_tasks(parameters, SplitSizes(1, 1, 274), 0)), "test"))
    drawn = Counter(task.stratum for task in of(small, "test"))
    assert all(abs(drawn[stratum] - whole[stratum] * 24 / 274) < 1 for stratum in whole)


def test_the_order_of_training_tasks_mixes_types(small: list[Task]) -> None:
    first = [task.stratum for task in of(small, "train")[:12]]
    assert len(set(first)) >= 4


def test_unseen_tasks_are_games_of_other_rooms_and_change_no_other_split(
    small: list[Task], parameters: AlfworldParameters
) -> None:
    tasks = list(make_tasks(parameters, dataclasses.replace(SMALL, unseen=20), 0))
    check_tasks(tasks)
    assert [task for task in tasks if task.split != "unseen"] == small
    unseen = of(tasks, "unseen")
    assert len({task.task_id for task in unseen}) == 20
    assert all(task.task_id.startswith("valid_unseen/") for task in unseen)


def test_more_tasks_than_games_are_refused(parameters: AlfworldParameters) -> None:
    with pytest.raises(TaskError, match=r"3550 \+ 4, but there are only 3553 training games"):
        list(make_tasks(parameters, SplitSizes(3550, 4, 1), 0))
    with pytest.raises(TaskError, match=r"tasks\.test: is 275, but there are only 274"):
        list(make_tasks(parameters, SplitSizes(1, 1, 275), 0))
    with pytest.raises(TaskError, match=r"tasks\.unseen: is 135, but there are only 134"):
        list(make_tasks(parameters, SplitSizes(1, 1, 1, 135), 0))


@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_spread_draws_each_game_at_most_once(count: int) -> None:
    paths = [f"train/{kind}-Mug-None-Bed-{n}/trial/game.tw-pddl" for kind in TASK_TYPES for n in range(5)]
    drawn = spread(paths, count, seed=4)
    assert len(drawn) == len(set(drawn)) == count
    assert set(drawn) <= set(paths)


def test_what_is_wrong_with_a_task_set_is_named() -> None:
    path = "train/pick_and_place_simple-Mug-None-Bed-301/trial_T1/game.tw-pddl"
    task = Task("a", "alfworld", 0, {"game": path}, "train")
    unseen = dataclasses.replace(task, spec={"game": path.replace("train/", "valid_unseen/", 1)})
    wrong = {
        "belongs to 'countdown'": [dataclasses.replace(task, environment="countdown")],
        "not an ALFWorld game": [dataclasses.replace(task, spec={"target": 54})],
        "a game of train cannot be of the split test": [dataclasses.replace(task, split="test")],
        "a game of valid_unseen cannot be of the split train": [unseen],
        "a game of train cannot be of the split unseen": [dataclasses.replace(task, split="unseen")],
        "is in train and in validation": [task, dataclasses.replace(task, split="validation")],
        "1 tasks repeat a game": [task, task],
    }
    for message, tasks in wrong.items():
        with pytest.raises(TaskError, match=message):
            check_tasks(tasks)
    check_tasks(
        [task, dataclasses.replace(unseen, split="test"), dataclasses.replace(unseen, split="unseen")]
    )
