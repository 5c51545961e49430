"""Every environment in the registry provides a complete bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.registry import ENVIRONMENTS, PARSERS
from skillpress.core.trajectory import Task
from skillpress.environments import bundle, countdown
from skillpress.environments.bundle import EnvironmentParameters, SplitSizes
from skillpress.environments.countdown import BUNDLE


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environments_alphabet_has_no_doubles(name: str) -> None:
    """An environment whose sections state their rules has no alphabet without a section."""
    found = bundle(name)
    alphabet = found.projection.alphabet
    assert len(set(alphabet)) == len(alphabet) and (len(alphabet) > 1) == (found.rules is None)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environments_section_is_an_environment_section(name: str) -> None:
    assert issubclass(bundle(name).parameters, EnvironmentParameters)


def test_countdowns_renderings_name_parsers_that_exist_and_the_history_asked_for() -> None:
    section = bundle("countdown").parameters.model_validate(
        {
            "name": "countdown",
            "max_steps": 30,
            "min_numbers": 3,
            "max_numbers": 4,
            "min_target": 10,
            "max_target": 999,
        }
    )
    for make in bundle("countdown").renderings.values():
        assert make(section, 3).parser in PARSERS
        assert make(section, 3).history == 3


def test_an_unknown_name_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ParamsError, match=r"environment.name: is 'chess'; allowed: .*countdown"):
        bundle("chess")


SECTION = {
    "name": "countdown", "max_steps": 30, "min_numbers": 3, "max_numbers": 4, "min_target": 10,
    "max_target": 999,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tasks: tasks[:-1], "tasks.test is 2, and make_tasks made 1"),
        (lambda tasks: [task for task in tasks if task.split != "validation"], "tasks.validation is 3"),
        (lambda tasks: [replace(task, split="train") for task in tasks], "make_tasks made 9"),
        (lambda tasks: [replace(task, split="dev") for task in tasks], "the split 'dev'"),
        (lambda tasks: [*tasks[:-1], tasks[-2]], "two test tasks with the id"),
    ],
)  # fmt: skip
def test_make_tasks_makes_as_many_of_every_split_as_asked_or_raises(
    change: Callable[[list[Task]], list[Task]], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, order = SplitSizes(4, 3, 2), ("train", "validation", "test")
    section = BUNDLE.parameters.model_validate(SECTION)
    right = sorted(
        bundle("countdown").make_tasks(section, sizes, 0), key=lambda task: order.index(task.split)
    )
    changed = replace(BUNDLE, make_tasks=lambda section, sizes, seed: iter(change(right)))
    monkeypatch.setattr(countdown, "BUNDLE", changed)
    with pytest.raises(TaskError, match=said):
        list(bundle("countdown").make_tasks(section, sizes, 0))
