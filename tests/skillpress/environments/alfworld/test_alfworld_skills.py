"""φ for ALFWorld: the paper's worked example (E.1) and the rules of Table 3."""

from __future__ import annotations

import pytest

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.alfworld.skills import AlfworldProjection, carried_after

TASK = Task("t", "alfworld", 0, {"game": "train/pick_and_place_simple-Mug-None-Bed-301/trial/game.tw-pddl"})
NOTHING = "Nothing happens."


def labels(*steps: str | tuple[str, str]) -> tuple[str | None, ...]:
    """The skill of each action; a pair is (action, answer), an action without an answer was carried out."""
    pairs = [(step, "Something happens.") if isinstance(step, str) else step for step in steps]
    played = tuple(Step((), (), (), "", action, answer, None, ()) for action, answer in pairs)
    episode = Trajectory("t", "g", 0, played, True, True, False, "won", 0, 0)
    return tuple(skill for skill, *_ in ((*skills, None) for skills in AlfworldProjection()(TASK, episode)))


def test_the_worked_example_of_appendix_e1() -> None:
    assert labels(
        "go to drawer 1", "open drawer 1", "take ladle 1 from drawer 1", "go to sinkbasin 1",
        "clean ladle 1 with sinkbasin 1", "go to countertop 1", "put ladle 1 on countertop 1",
    ) == ("Explore", "Explore", "Take", "Transport", "Transform", "Transport", "Deliver")  # fmt: skip


def test_the_new_grammar_projects_like_the_old() -> None:
    assert labels("take mug 1 from bed 1", "move mug 1 to desk 1", "go to bed 1") == labels(
        "take mug 1 from bed 1", "put mug 1 in/on desk 1", "go to bed 1"
    )


@pytest.mark.parametrize("refused", ["take mug 1 from bed 1", "take nothing"])
def test_a_refused_take_has_its_skill_but_fills_no_hands(refused: str) -> None:
    assert labels((refused, NOTHING), "go to desk 1") == ("Take", "Explore")


def test_a_refused_move_leaves_the_hands_full() -> None:
    took = "take mug 1 from bed 1"
    assert labels(took, ("move mug 1 to safe 1", NOTHING), "open safe 1") == ("Take", "Deliver", "Transport")


def test_after_a_delivery_the_agent_explores_again() -> None:
    assert labels("take mug 1 from bed 1", "move mug 1 to desk 1", "go to bed 1")[-1] == "Explore"


@pytest.mark.parametrize("action", ["close drawer 1", "inventory", "help", "slice apple 1 with knife 1", ""])
def test_what_the_table_leaves_out_has_no_skill(action: str) -> None:
    assert labels(action) == (None,)
    assert labels("take mug 1 from bed 1", action)[1] is None


@pytest.mark.parametrize(
    ("action", "skill"),
    [
        ("look", "Explore"), ("examine mug 1", "Explore"), ("use desklamp 1", "Transform"),
        ("heat egg 1 with microwave 1", "Transform"), ("cool egg 1 with fridge 1", "Transform"),
    ],
)  # fmt: skip
def test_looking_and_transforming_do_not_depend_on_the_hands(action: str, skill: str) -> None:
    assert labels(action) == (skill,)
    assert labels("take mug 1 from bed 1", action)[1] == skill


def test_only_takes_and_puts_change_what_is_carried() -> None:
    for carrying in (False, True):
        for action in ("go to bed 1", "heat egg 1 with microwave 1", "look", ""):
            assert carried_after(carrying, action, "Something happens.") is carrying
