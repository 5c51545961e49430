"""What failed episodes lacked (Table 7) and how many walks were needless (Table 6), counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.evaluation.paper.alfworld.behavior import alfworld_behavior, failure_mode
from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.statistics.episodes import evaluation_steps

CLEAN = "pick_clean_then_place_in_recep-Mug-None-Desk-301"
TWO = "pick_two_obj_and_place-Mug-None-Desk-301"
LOOK = "look_at_obj_in_light-Mug-None-DeskLamp-301"
TAKE = "take mug 1 from bed 1"


def task(name: str) -> Task:
    return Task(
        f"valid_unseen/{name}/trial", "alfworld", 0, {"game": f"valid_unseen/{name}/trial/game.tw-pddl"}
    )


def mode(name: str, *actions: str) -> str:
    """The failure mode; an action that begins with ``!`` was refused."""
    answers = ["Nothing happens." if action.startswith("!") else "Done." for action in actions]
    return failure_mode(task(name), [action.removeprefix("!") for action in actions], answers)


@pytest.mark.parametrize("name", [CLEAN, TWO, LOOK])
def test_who_took_no_object_of_the_kind_never_picked_the_target(name: str) -> None:
    assert mode(name) == "never_picked_target"
    assert mode(name, "take mugholder 1 from bed 1", f"!{TAKE}") == "never_picked_target"


def test_who_took_it_and_never_cleaned_it_did_not_transform() -> None:
    assert mode(CLEAN, TAKE) == "picked_no_transform"
    assert mode(CLEAN, TAKE, "!clean mug 1 with sinkbasin 1") == "picked_no_transform"
    assert mode(CLEAN, TAKE, "heat mug 1 with microwave 1") == "picked_no_transform"
    assert mode(CLEAN, TAKE, "clean mug 1 with sinkbasin 1") == "other"
    assert mode(CLEAN, "clean mug 1 with sinkbasin 1") == "never_picked_target"  # carried since before


def test_one_of_two_in_its_place_is_a_partial_delivery() -> None:
    assert mode(TWO, TAKE) == "other"
    assert mode(TWO, TAKE, "move mug 1 to desk 2") == "two_partial_deliver"
    assert mode(TWO, TAKE, "put mug 1 in/on desk 2") == "two_partial_deliver"
    assert mode(TWO, TAKE, "move mug 1 to shelf 2") == "other"
    assert mode(TWO, TAKE, "!move mug 1 to desk 2") == "other"
    assert mode(TWO, TAKE, "move mug 1 to desk 2", "take mug 1 from desk 2") == "other"
    again = ["take mug 1 from desk 2", "move mug 1 to desk 1"]
    assert mode(TWO, TAKE, "move mug 1 to desk 2", *again) == "two_partial_deliver"


def test_other_tasks_know_neither_of_the_last_two() -> None:
    assert mode(LOOK, TAKE) == "other"


def played(name: str, actions: Sequence[str], won: bool) -> Trajectory:
    steps = tuple(
        Step((), (), (), "", a.removeprefix("!"), "", "not_admissible" if a.startswith("!") else None, ())
        for a in actions
    )
    ended = "won" if won else "timeout"
    return Trajectory(task(name).task_id, "run-0", 0, steps, won, won, not won, ended, 0, 0)


@pytest.fixture
def behavior() -> EnvironmentBehavior:
    won = ["go to bed 1", "!go to bath 1", "go to desk 1", "go to bed 1", "go to bed 1", "close bed 1"]
    return alfworld_behavior(
        evaluation_steps(
            rollout_frame(
                [
                    played(CLEAN, won, True),
                    played(LOOK, ["go to bed 1"], True),
                    played(TWO, ["go to bed 1", f"!{TAKE}"], False),
                    played(CLEAN.replace("301", "302"), [TAKE], False),
                ]
            )
        )
    )


def test_figures_count_what_was_carried_out(behavior: EnvironmentBehavior) -> None:
    found = {figure.key: (figure.value, figure.episodes) for figure in behavior.figures}
    assert found["redundant_visits"] == (2 / 2, 2)  # bed twice again, in one of two won episodes
    assert found["failures_never_picked_target"] == (1, 2)
    assert found["failures_picked_no_transform"] == (1, 2)
    assert found["failures_two_partial_deliver"] == found["failures_other"] == (0, 2)


def test_the_mix_holds_every_step_of_a_success(behavior: EnvironmentBehavior) -> None:
    counted = {kind: count for kind, count in behavior.action_mix.items() if count}
    assert counted == {"go": 5, "close": 1, "Invalid": 1}


def test_without_successes_the_figure_is_missing() -> None:
    behavior = alfworld_behavior(evaluation_steps(rollout_frame([played(TWO, [TAKE], False)])))
    assert behavior.figures[0].value is None
    assert not any(behavior.action_mix.values())
