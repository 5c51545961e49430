"""Cooking's own figures, by hand on four short episodes."""

from __future__ import annotations

import polars as pl
import pytest

from skillpress.core.trajectory import Task
from skillpress.evaluation.paper.textworld_cooking.behavior import (
    COOKING_THOUGHT,
    cook_emission,
    cooking_behavior,
    is_cook_action,
    trap_table,
)
from skillpress.evaluation.statistics import EvaluationSteps, evaluation_steps


def task(name: str, cook: bool, cooked: str) -> Task:
    settings = {"rooms": 1, "ingredients": 1, "cook": cook, "cut": False}
    spec = {
        "settings": settings,
        "ingredients": [["egg", cooked, "uncut"]],
        "trap": not cook and cooked != "raw",
    }
    return Task(name, "textworld_cooking", 0, spec, "test", "simple")


TASKS = [task("trap", False, "fried"), task("silent", False, "raw"), task("cook", True, "fried")]


@pytest.fixture
def steps() -> EvaluationSteps:
    """Two runs of the trap (one burns), one of the silent game (timeout), one of the cook game."""
    episodes = [
        ("trap", 0, ["examine cookbook", "take egg", "cook egg with stove"], "burned"),
        ("trap", 1, ["examine cookbook", "take egg", "prepare meal", "eat meal"], "won"),
        ("silent", 0, ["look", "fly", "fly", "fly", "fly"], "timeout"),
        ("cook", 0, ["take egg", "cook egg with stove", "prepare meal", "eat meal"], "won"),
    ]
    frame = pl.DataFrame(
        [
            (
                0,
                name,
                rollout,
                number,
                action,
                "unknown_verb" if action == "fly" else None,
                end == "won",
                end,
            )
            for name, rollout, actions, end in episodes
            for number, action in enumerate(actions)
        ],
        schema=["run", "task_id", "rollout_index", "step", "action", "invalid", "won", "outcome"],
        orient="row",
    )
    return evaluation_steps(
        frame.with_columns(
            thought=pl.lit(""),
            observation=pl.lit(""),
            first_observation=pl.lit(""),
            policy_version=pl.lit(0),
            skills=pl.lit(None, pl.List(pl.String)),
            answer=pl.lit(None, pl.String),
        )
    )


def test_failures_reading_and_cooking(steps: EvaluationSteps) -> None:
    found = {figure.key: (figure.value, figure.episodes) for figure in cooking_behavior(steps).figures}
    assert found == {"failure_length": (4.0, 2), "read_recipe": (0.5, 4), "cook_actions": (0.5, 2)}


def test_the_action_mix_counts_successes_by_skill(steps: EvaluationSteps) -> None:
    mix = cooking_behavior(steps).action_mix
    assert {name: count for name, count in mix.items() if count} == {
        "Read_Recipe": 1, "Take": 2, "Cook": 1, "Prepare_Meal": 2, "Eat_Meal": 2,
    }  # fmt: skip
    assert mix["Invalid"] == 0


def test_table_5_tells_the_trap_from_the_silent_cookbook(steps: EvaluationSteps) -> None:
    assert trap_table(TASKS).rows() == [("trap", True, True), ("silent", True, False), ("cook", False, True)]
    trapped, silent = (cook_emission(steps, TASKS, says) for says in (True, False))
    assert (trapped.value, trapped.episodes) == (0.5, 2)
    assert (silent.value, silent.episodes) == (0.0, 1)


def test_table_5_reads_thoughts_and_actions_as_the_paper_does() -> None:
    assert COOKING_THOUGHT.search("I should put it in the Oven.")
    assert COOKING_THOUGHT.search("Then FRY it")
    assert not COOKING_THOUGHT.search("Let me slice it.")
    assert is_cook_action("cook egg with stove")
    assert not is_cook_action("examine cookbook")
