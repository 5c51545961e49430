"""φ: Table 3's 26 skills, and the worked example of E.3."""

from __future__ import annotations

import pytest

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.countdown.skills import CountdownProjection, role, skill


def trajectory(*actions: str) -> Trajectory:
    steps = tuple(Step((), (), (), "", action, "", None, ()) for action in actions)
    return Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)


def test_the_papers_worked_example(worked_example: Task) -> None:
    skills = CountdownProjection()(
        worked_example, trajectory("op(-, 80, 28)", "op(+, 52, 2)", "op(*, 54, 1)")
    )
    assert skills == (("OP_Sub-large-small",), ("OP_Add-near_target-small",), ("OP_Mul-near_target-small",))


def test_there_are_26_skills_and_every_label_is_one_of_them(make_task) -> None:
    projection = CountdownProjection()
    assert len(set(projection.alphabet)) == len(projection.alphabet) == 26
    actions = [f"op({o}, {a}, {b})" for o in "+-*/" for a in (1, 100, 500) for b in (1, 100, 500)]
    found = projection(make_task(100, 1, 2, 3), trajectory(*actions, "rollback", "reset"))
    assert set(found) == {(skill,) for skill in projection.alphabet}


def test_the_order_of_the_operands_does_not_matter() -> None:
    assert skill("op(+, 1, 10)", 10) == skill("op(+, 10, 1)", 10) == "OP_Add-near_target-small"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(48, "small"), (49, "near_target"), (54, "near_target"), (59, "near_target"), (60, "large")],
)
def test_roles_relative_to_54_change_at_48_point_6_and_59_point_4(number: int, expected: str) -> None:
    assert role(number, 54) == expected


def test_ten_percent_is_still_near() -> None:
    assert [role(n, 50) for n in (44, 45, 55, 56)] == ["small", "near_target", "near_target", "large"]


@pytest.mark.parametrize(
    "action", ["", "op(+, 1)", "op(^, 1, 2)", "+01", "Reset the pool", "op(+, 1, 2) now"]
)
def test_what_cannot_be_read_has_no_skill(action: str) -> None:
    assert skill(action, 54) is None
