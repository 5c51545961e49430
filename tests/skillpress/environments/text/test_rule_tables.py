"""Rule tables: the first matching pattern decides, and an action that matches none has no skill."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.text.rules import RuleTable, VerbProjection

TABLE = RuleTable(
    [
        ("examine cookbook", "Read"),
        ("examine *", "Inspect"),
        ("look", "Inspect"),
        ("put * in/on *", "Deliver"),
    ]
)
TASK = Task("t", "any", 0, {})


def trajectory(*actions: str) -> Trajectory:
    steps = tuple(Step((), (), (), "", action, "", None, ()) for action in actions)
    return Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)


@pytest.mark.parametrize(
    ("action", "skill"),
    [
        ("examine cookbook", "Read"),
        ("examine red cookbook", "Inspect"),
        ("examine", None),
        ("examine  Cookbook ", "Read"),
        ("look", "Inspect"),
        ("look around", None),
        ("relook", None),
        ("put apple 1 in/on fridge 1", "Deliver"),
        ("put apple 1 in/on", None),
        ("", None),
    ],
)
def test_the_first_pattern_that_fits_whole_words_gives_the_skill(action: str, skill: str | None) -> None:
    assert TABLE.skill(action) == skill


def test_order_matters() -> None:
    assert RuleTable([("eat *", "Inspect"), ("eat meal", "Eat")]).skill("eat meal") == "Inspect"
    assert RuleTable([("eat meal", "Eat"), ("eat *", "Inspect")]).skill("eat meal") == "Eat"


def test_the_alphabet_has_each_skill_once_in_the_tables_order() -> None:
    assert TABLE.alphabet == ("Read", "Inspect", "Deliver")


def test_a_projection_gives_each_step_its_skill_or_none() -> None:
    assert TABLE(TASK, trajectory("look", "fly", "examine cookbook")) == (("Inspect",), (), ("Read",))


@given(st.text(max_size=30))
def test_any_text_has_a_label_of_the_alphabet_or_none(action: str) -> None:
    assert TABLE.skill(action) in (*TABLE.alphabet, None)


def test_verbs_need_no_rules_but_a_fixed_alphabet() -> None:
    verbs = VerbProjection(["go", "Take", "go"])
    assert verbs.alphabet == ("go", "take")
    assert verbs(TASK, trajectory("go to hell", "TAKE it", "xyzzy", "")) == (("go",), ("take",), (), ())
