"""The three failures on episodes whose steps were judged by hand."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory
from skillpress.evaluation.analysis.failures import KINDS, counts, failure_figures, kinds_of_episodes, loops
from skillpress.evaluation.statistics import evaluation_steps
from tests.support.episodes import made_step, made_trajectory

START = "Target: 45. Numbers: 14 24 55"


def step(action: str, observation: str, invalid: str | None = None) -> Step:
    return made_step(action=action, observation=observation, invalid=invalid)


def episode(task: str, won: bool, *steps: Step) -> Trajectory:
    return made_trajectory(steps, won=won, task_id=task, group_id=f"run-0/{task}", first_observation=START)


def kinds(*episodes: Trajectory) -> pl.DataFrame:
    return kinds_of_episodes(evaluation_steps(rollout_frame(episodes)))


WON = episode(
    "won",
    True,
    step("op(+, 55, 14)", "Numbers: 24 69"),  # taken back by the rollback, which is on the loop too
    step("rollback", "Numbers: 14 24 55"),
    step("", "Nothing happens", "missing_action"),
    step("op(/, 24, 14)", "Nothing happens", "not_exact"),
    step("op(-, 24, 14)", "Numbers: 10 55"),
    step("op(-, 55, 10)", "Numbers: 45"),
)
LOST = episode(
    "lost",
    False,
    step("a", "room"),
    step("b", "hall"),
    step("a", "room"),
    step("jump", "hall", "missing_thought"),  # let through and carried out
    step("fly", "Nothing happens", "missing_thought+not_admissible"),
    step("", "", "prompt_too_long"),
)


def test_every_step_is_of_the_kind_that_a_hand_gives_it() -> None:
    found = {row["task_id"]: row for row in kinds(WON, LOST).iter_rows(named=True)}
    names = [kind.key for kind in KINDS]
    assert [found["won"][name] for name in names] == [2, 2, 0, 1, 1, 0]
    assert [found["lost"][name] for name in names] == [0, 2, 2, 0, 1, 1]  # hall and room again: a loop
    assert found["won"]["length"] == found["lost"]["length"] == 6
    assert counts(kinds(WON, LOST)) == dict(zip(names, [2, 4, 2, 1, 2, 1], strict=True))


def test_the_parsers_empty_answer_and_the_environments_are_told_apart() -> None:
    """An empty element is well-formed (lenient parser), so the environment refuses it."""
    found = kinds(episode("a", False, step("", "Nothing happens", "not_admissible"))).row(0, named=True)
    assert found["unfit"] == 1 and found["unreadable"] == 0


@pytest.mark.parametrize(
    ("seen", "erased"),
    [
        ("", ""),
        ("abc", "..."),
        ("aba", ".xx"),  # from a to b and back
        ("abca", ".xxx"),
        ("aa", ".x"),  # nothing new
        ("abcbd", "..xx."),
        ("a0b", "xx."),  # back at the start
        ("0a", "x."),
        ("abab", ".xx."),  # b is new again once its loop is gone
        ("abcabd", ".xxx.."),
    ],
)
def test_loops_are_erased_in_the_order_acted(seen: str, erased: str) -> None:
    found = loops([f"Numbers: {each}" for each in seen], "Target: 1. Numbers: 0")
    assert "".join(".x"[on] for on in found) == erased


def test_an_empty_observation_is_no_place_to_come_back_to() -> None:
    assert loops(["", "hall", "", "hall", ""], "door") == [False, False, True, True, False]


@given(st.text("abcde0", max_size=30))
def test_what_remains_visits_no_place_twice_and_ends_where_the_episode_did(seen: str) -> None:
    erased = loops(list(seen), "0")
    remains = [place for place, on in zip(seen, erased, strict=True) if not on]
    assert len(set(remains)) == len(remains) and "0" not in remains
    if seen and seen[-1] != "0":
        assert remains[-1] == seen[-1]


def test_the_shares_of_all_kinds_add_up_to_1_and_have_intervals() -> None:
    figures = {figure.key: figure for figure in failure_figures(kinds(WON, LOST))}
    shares = [figures[f"steps_{kind.key}"] for kind in KINDS]
    assert sum(figure.value or 0 for figure in shares) == pytest.approx(1)
    assert figures["steps_taken_back"].value == pytest.approx(4 / 12)
    for figure in shares:
        assert figure.low is not None and figure.high is not None and figure.value is not None
        assert figure.low <= figure.value <= figure.high


def test_a_lost_episode_without_a_refused_action_was_lost_by_its_thoughts() -> None:
    valid = episode("thoughts", False, step("a", "room"), step("b", "hall"))
    figures = {figure.key: figure for figure in failure_figures(kinds(WON, LOST, valid))}
    assert figures["lost_by_thought"].value == pytest.approx(1 / 2)
    assert figures["lost_by_thought"].episodes == 2


def test_where_everything_was_won_nothing_was_lost() -> None:
    figures = {figure.key: figure for figure in failure_figures(kinds(WON))}
    assert figures["lost_by_thought"].value is None
