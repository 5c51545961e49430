"""Countdown-Stepwise: the effect of each action, how episodes end, and that they can be replayed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.actions import action_words, compact_word
from skillpress.environments.countdown.environment import Countdown, CountdownState
from skillpress.environments.countdown.rules import successors
from tests.support.environments import episodes
from tests.support.environments.small_games import COUNTDOWN as PARAMETERS

Outcome = tuple[str, bool, bool, Info]


def play(task: Task, actions: Sequence[str], max_steps: int = 30) -> list[Outcome]:
    """The environment's answers up to the end of the episode or of the actions."""
    return episodes.play(Countdown(PARAMETERS.model_copy(update={"max_steps": max_steps})), task, actions)


def last(task: Task, *actions: str, max_steps: int = 30) -> Outcome:
    answers = play(task, actions, max_steps)
    assert len(answers) == len(actions), "the episode ended early"
    return answers[-1]


def pool(info: Info) -> tuple[int, ...]:
    assert isinstance(info.state, CountdownState)
    return info.state.pool


def test_reset_shows_the_sorted_pool_with_duplicates(make_task) -> None:
    observation, info = Countdown(PARAMETERS).reset(make_task(54, 80, 2, 28, 2))
    assert pool(info) == (2, 2, 28, 80)
    assert observation == "Target: 54. Numbers: 2 2 28 80"


def test_the_papers_worked_example_wins_in_three_steps(worked_example: Task) -> None:
    _, terminated, truncated, info = last(
        worked_example, "op(-, 80, 28)", "op(+, 52, 2)", "op(*, 54, 1)", max_steps=3
    )
    assert info.won
    assert terminated
    assert not truncated
    assert pool(info) == (54,)


def test_both_wordings_name_the_same_actions(worked_example: Task) -> None:
    by_number = play(worked_example, ["op(-, 80, 28)", "op(+, 2, 52)", "reset", "op(+, 1, 2)"])
    by_slot = play(worked_example, ["-23", "+12", "reset", "+01"])
    assert by_number == by_slot
    assert [info.action for *_, info in by_slot] == ["op(-, 80, 28)", "op(+, 52, 2)", "reset", "op(+, 2, 1)"]


def test_a_single_number_that_is_not_the_target_does_not_win(make_task) -> None:
    _, terminated, _, info = last(make_task(54, 1, 2, 3), "op(+, 1, 2)", "op(*, 3, 3)")
    assert pool(info) == (9,)
    assert not info.won
    assert not terminated


def test_the_target_among_other_numbers_does_not_win(make_task) -> None:
    *_, info = last(make_task(54, 50, 4, 3), "op(+, 50, 4)")
    assert pool(info) == (3, 54)
    assert not info.won


def test_rollback_takes_back_one_operation_and_reset_all(worked_example: Task) -> None:
    two = ["op(-, 80, 28)", "op(+, 52, 2)"]
    assert pool(last(worked_example, *two, "rollback")[3]) == (1, 2, 52)
    assert pool(last(worked_example, *two, "rollback", "rollback")[3]) == (1, 2, 28, 80)
    assert pool(last(worked_example, *two, "reset")[3]) == (1, 2, 28, 80)


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (["fly to the moon"], "unreadable"),
        ([""], "unreadable"),
        (["op(+, 80, -28)"], "unreadable"),
        (["+21"], "unreadable"),
        (["op(+, 80, 29)"], "no_such_number"),
        (["op(+, 28, 28)"], "no_such_number"),
        (["+04"], "no_such_number"),
        (["op(-, 28, 80)"], "negative"),
        (["op(/, 80, 28)"], "not_exact"),
        (["op(/, 28, 80)"], "not_exact"),
        (["op(*, 80, 28)"], "too_large"),
        (["rollback"], "nothing_to_undo"),
        (["reset"], "nothing_to_undo"),
        (["op(+, 1, 2)", "reset", "rollback"], "nothing_to_undo"),
    ],
)
def test_an_invalid_action_says_why_costs_a_step_and_changes_nothing(
    worked_example: Task, actions: list[str], reason: str
) -> None:
    observation, terminated, truncated, info = last(worked_example, *actions)
    assert info.invalid == reason
    assert pool(info) == (1, 2, 28, 80)
    assert isinstance(info.state, CountdownState)
    assert info.state.steps == len(actions)
    assert observation.startswith("Nothing happens: ")
    assert not terminated
    assert not truncated


@pytest.mark.parametrize("action", ["op(+, 9, 9)", "+01", "what now?", ""])
def test_an_operation_or_an_unreadable_action_with_one_number_left_is_stuck(make_task, action: str) -> None:
    _, terminated, truncated, info = last(make_task(54, 1, 2, 3), "+01", "*01", action)
    assert info.lost == "stuck"
    assert terminated
    assert not truncated


def test_undoing_with_one_number_left_is_not_stuck(make_task) -> None:
    task = make_task(54, 1, 2, 3)
    assert last(task, "+01", "*01", "rollback")[3].lost is None
    assert last(task, "+01", "*01", "reset")[3].lost is None


def test_it_is_an_environment_with_gymnasium_spaces() -> None:
    environment: Environment = Countdown(PARAMETERS)
    assert environment.action_space.contains("op(+, 80, 28)")
    assert environment.observation_space.contains(
        "Nothing happens: the division is not exact. Numbers: 1 2 28 80"
    )


numbers = st.lists(st.integers(1, 100), min_size=3, max_size=4)
texts = st.lists(st.one_of(st.sampled_from(action_words(4)), st.text(max_size=12)), max_size=12)


@settings(max_examples=60)
@given(numbers, st.integers(10, 999), texts)
def test_any_text_is_an_action_and_the_canonical_wording_replays_the_episode(
    start: list[int], target: int, actions: list[str]
) -> None:
    task = Task("t", "countdown", 0, {"target": target, "numbers": start})
    answers = play(task, actions)
    assert answers == play(task, actions)
    canonical = [info.action or action for action, (*_, info) in zip(actions, answers, strict=False)]
    assert [pool(info) for *_, info in answers] == [pool(info) for *_, info in play(task, canonical)]


@settings(max_examples=60)
@given(numbers, texts)
def test_what_is_admissible_would_be_carried_out_and_nothing_else(
    start: list[int], actions: list[str]
) -> None:
    task = Task("t", "countdown", 0, {"target": 999, "numbers": start})
    past = list(actions[:3])
    answers = play(task, past)
    if answers and (answers[-1][1] or answers[-1][2]):
        return
    info = answers[-1][3] if answers else Countdown(PARAMETERS).reset(task)[1]
    for action in info.admissible:
        after = last(task, *past, action)[3]
        assert after.invalid is None
        assert after.action == action
    carried_out = {
        after.action
        for word in action_words(4)
        if (after := last(task, *past, word)[3]).invalid is None and after.lost is None
    }
    assert carried_out == set(info.admissible)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=5).map(lambda ns: tuple(sorted(ns))))
def test_every_legal_operation_has_a_compact_word(start: tuple[int, ...]) -> None:
    task = Task("t", "countdown", 0, {"target": 10**6, "numbers": list(start)})
    for operation, left in successors(start, 999):
        info = last(task, compact_word(operation, start))[3]
        assert info.action == str(operation)
        assert pool(info) == left


def test_a_state_is_the_numbers_left_however_they_came_about(worked_example: Task) -> None:
    there, back = last(worked_example, "op(-, 80, 28)"), last(worked_example, "op(-, 80, 28)", "nonsense")
    assert there[3].state_key == back[3].state_key == "1 2 52", "though what is observed differs"
    undone = last(worked_example, "op(-, 80, 28)", "rollback")
    assert undone[3].state_key == Countdown(PARAMETERS).reset(worked_example)[1].state_key == "1 2 28 80"
