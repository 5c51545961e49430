"""φ: thirty skills, by the verb alone, whatever the section is."""

from __future__ import annotations

import pytest

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import projection_without_keys
from skillpress.environments.workshop.actions import Machine, machine_actions, routine_actions
from skillpress.environments.workshop.oracle import routine, shortcut
from tests.support.environments.workshops import made, section


def skills(*actions: str) -> list[str | None]:
    steps = tuple(Step((), (), (), "", action, "", None, ()) for action in actions)
    trajectory = Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)
    found = projection_without_keys("workshop")(Task("t", "workshop", 0, {}), trajectory)
    return [each[0] if each else None for each in found]


def test_the_alphabet_is_thirty_skills_in_a_fixed_order() -> None:
    assert projection_without_keys("workshop").alphabet == (
        "Go", "Walk", "Run", "Take", "Grab", "Lift",
        "Saw", "Sand", "Drill", "Carve", "Bend", "Glue", "Paint", "Wax", "Deliver", "Hand", "Ship",
        "Pull", "Turn", "Ring", "Kick", "Push", "Blow", "Shake", "Tap", "Spin", "Press", "Wind", "Throw",
        "Tinker",
    )  # fmt: skip


def test_a_routine_reads_as_its_verbs() -> None:
    first, second = ("go yard", "grab handsaw", "saw piece"), ("run porch", "lift cloth", "wax piece")
    assert skills(*first, *second, "ship piece") == ["Go", "Grab", "Saw", "Run", "Lift", "Wax", "Ship"]


@pytest.mark.parametrize("machine", ["own", "same", "one"])
def test_every_action_has_a_skill_and_its_kind_of_it(machine: Machine) -> None:
    own = skills(*(action.text for action in machine_actions(machine)))
    works = skills(*(action.text for action in routine_actions()))
    assert None not in own and None not in works
    if machine == "own":
        assert len(set(own)) == 12 and not set(own) & set(works)
    elif machine == "one":
        assert set(own) == {"Tinker"}
    else:
        assert set(own) == set(works)


def test_a_same_shortcut_of_the_routines_length_has_the_routines_skills() -> None:
    parameters = section({"skills": "same", "length": 7})
    for task in made(parameters)[:20]:
        one, other = routine(task, 0, parameters), shortcut(task, 0, parameters)
        assert one != other and skills(*one) == skills(*other)


@pytest.mark.parametrize("action", ["", "go", "sing song", "piece saw"])
def test_what_is_no_action_has_no_skill(action: str) -> None:
    assert skills(action) == [None]
