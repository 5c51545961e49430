"""Table 3's rules for TextWorld-Cooking, and the paper's worked example E.2."""

from __future__ import annotations

from random import Random

import pytest

from skillpress.core.trajectory import Step, Task, Trajectory, skill_sequence
from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.skills import PROJECTION


def test_the_papers_worked_example() -> None:
    actions = (
        "examine cookbook", "open fridge", "take carrot from fridge", "dice carrot",
        "cook carrot with stove", "prepare meal", "eat meal",
    )  # fmt: skip
    steps = tuple(Step((), (), (), "", action, "", None, ()) for action in actions)
    trajectory = Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)
    assert skill_sequence(PROJECTION, Task("t", "textworld_cooking", 0, {}), trajectory) == (
        "Read_Recipe", "Open", "Take", "Cut", "Cook", "Prepare_Meal", "Eat_Meal",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("action", "skill"),
    [
        ("look", "Inspect"),
        ("inventory", "Inspect"),
        ("examine fridge", "Inspect"),
        ("eat carrot", "Inspect"),
        ("go north", "Explore"),
        ("close plain door", "Open"),
        ("drop knife", "Deliver"),
        ("put carrot on table", "Deliver"),
        ("insert carrot into fridge", "Deliver"),
        ("chop carrot with knife", "Cut"),
        ("cook carrot with BBQ", "Cook"),
        ("drink water", None),
        ("restart", None),
        ("", None),
    ],
)
def test_each_row_of_the_table(action: str, skill: str | None) -> None:
    assert PROJECTION.skill(action) == skill


def test_every_admissible_action_but_drinking_has_a_skill(environment: TextWorldCooking, hard: Task) -> None:
    random = Random(0)
    _, info = environment.reset(hard)
    met = set(info.admissible)
    over = False
    while not over:
        _, terminated, truncated, info = environment.step(random.choice(info.admissible))
        met |= set(info.admissible)
        over = terminated or truncated
    assert len(met) > 30
    assert {action for action in met if PROJECTION.skill(action) is None} == {
        action for action in met if action.startswith("drink ")
    }
