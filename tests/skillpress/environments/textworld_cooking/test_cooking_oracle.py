"""The oracle's demonstrations win, detours and all."""

from __future__ import annotations

import pytest

from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.oracle import CookingOracle
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.errors import TaskError
from skillpress.trajectory import Task


def test_without_detours_it_is_the_walkthrough(cooking_parameters: CookingParameters, hard: Task) -> None:
    assert CookingOracle(cooking_parameters)(hard, 0.0, 3) == hard.spec["walkthrough"]


@pytest.mark.parametrize("seed", range(4))
def test_with_detours_every_step_is_carried_out_and_the_last_one_wins(
    cooking_parameters: CookingParameters, environment: TextWorldCooking, hard: Task, seed: int
) -> None:
    said = CookingOracle(cooking_parameters)(hard, 0.5, seed)
    environment.reset(hard)
    answers = [environment.step(action)[3] for action in said]
    assert [info.invalid for info in answers] == [None] * len(said)
    assert [info.won for info in answers] == [False] * (len(said) - 1) + [True]
    assert len(said) > len(hard.spec["walkthrough"])
    rest = iter(said)
    assert all(step in rest for step in hard.spec["walkthrough"]), "the walkthrough's steps keep their order"


def test_the_seed_decides(cooking_parameters: CookingParameters, hard: Task) -> None:
    oracle = CookingOracle(cooking_parameters)
    assert oracle(hard, 0.5, 1) == oracle(hard, 0.5, 1) != oracle(hard, 0.5, 2)


def test_it_keeps_to_the_step_budget(cooking_parameters: CookingParameters, hard: Task) -> None:
    length = len(hard.spec["walkthrough"])
    tight = CookingOracle(cooking_parameters.model_copy(update={"max_steps": length + 1}))
    assert len(tight(hard, 1.0, 0)) <= length + 1
    with pytest.raises(TaskError, match=f"takes {length} steps, not {length - 1}"):
        CookingOracle(cooking_parameters.model_copy(update={"max_steps": length - 1}))(hard, 0.0, 0)
