"""Splits share no task, and no task is repeated within a split that must not repeat tasks."""

from __future__ import annotations

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.splits import disjoint_splits, refuse_repetitions


def puzzle(name: str, split: str, environment: str = "here") -> Task:
    return Task(f"{split}-{name}", environment, 0, {"name": name}, split)


def name_of(task: Task) -> str:
    return str(task.spec["name"])


def test_every_key_is_given_its_split() -> None:
    tasks = [puzzle("a", "train"), puzzle("b", "test"), puzzle("a", "train")]
    assert disjoint_splits(tasks, "here", "puzzle", name_of) == {"a": "train", "b": "test"}


def test_a_task_of_two_splits_is_refused_by_name() -> None:
    tasks = [puzzle("a", "train"), puzzle("a", "test")]
    with pytest.raises(TaskError, match="splits overlap: puzzle a is in train and in test"):
        disjoint_splits(tasks, "here", "puzzle", name_of)


def test_another_environments_task_is_refused() -> None:
    with pytest.raises(TaskError, match="task train-a belongs to 'elsewhere', not to 'here'"):
        disjoint_splits([puzzle("a", "train", "elsewhere")], "here", "puzzle", name_of)


def test_repetitions_within_a_split_are_counted_and_refused() -> None:
    tasks = [puzzle("a", "train"), puzzle("b", "train"), puzzle("a", "train"), puzzle("a", "train")]
    with pytest.raises(TaskError, match="2 tasks repeat a puzzle of their own split"):
        refuse_repetitions(tasks, "here", "puzzle", name_of)
