"""Countdown's behaviour figures, counted by hand on three short episodes."""

from __future__ import annotations

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory
from skillpress.evaluation.paper.countdown.behavior import countdown_behavior
from skillpress.evaluation.statistics.episodes import evaluation_steps

STRAIGHT = ["op(+, 80, 28)", "op(/, 108, 2)"]
DETOUR = ["op(-, 9, 4)", "reset", "!op(/, 9, 4)", "op(-, 9, 4)", "rollback", "reset", "op(+, 9, 4)"]
LOST = ["op(*, 9, 4)", "reset", "op(*, 9, 4)"]


def trajectory(task, actions, won):
    steps = tuple(
        Step((), (), (), "", a.removeprefix("!"), "", "inexact" if a.startswith("!") else None, ())
        for a in actions
    )
    return Trajectory(task, "run-0", 0, steps, won, won, not won, "won" if won else "timeout", 0, 0)


@pytest.fixture
def played():
    frame = rollout_frame(
        [trajectory("a", STRAIGHT, True), trajectory("b", DETOUR, True), trajectory("c", LOST, False)]
    )
    return countdown_behavior(evaluation_steps(frame))


def test_the_figures_of_tables_2_and_9(played):
    found = {f.key: (f.value, f.episodes) for f in played.figures}
    assert found["resets_per_success"] == (1.0, 2)
    assert found["zero_reset_share"] == (0.5, 2)
    assert found["zero_reset_success"] == (pytest.approx(1 / 3), 3)
    assert found["multiply_divide_share"] == (pytest.approx(1 / 5), 2)  # the invalid division does not count
    assert found["unique_operations"] == (2.0, 2)  # {+, /} and {-, +}


def test_the_closing_operation_is_the_last_one_of_a_success(played):
    closing = {f.key: f.value for f in played.figures if f.table == "Table 4"}
    assert closing == {"closing_add": 1, "closing_subtract": 0, "closing_multiply": 0, "closing_divide": 1}


def test_every_step_of_a_success_is_of_one_kind(played):
    assert sum(played.action_mix.values()) == len(STRAIGHT) + len(DETOUR)
    assert played.action_mix == {
        "Add": 2, "Subtract": 2, "Multiply": 0, "Divide": 1, "Rollback": 1, "Reset": 2, "Invalid": 1,
    }  # fmt: skip


def test_without_successes_figures_are_missing_and_the_mix_is_empty():
    behavior = countdown_behavior(evaluation_steps(rollout_frame([trajectory("c", LOST, False)])))
    found = {f.key: f.value for f in behavior.figures}
    assert found["resets_per_success"] is None
    assert found["zero_reset_success"] == 0
    assert sum(behavior.action_mix.values()) == 0
