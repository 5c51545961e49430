"""The solver finds every solution; the oracle demonstrates one of them and undoes its mistakes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.environment import Countdown, CountdownState
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.rules import OPERATORS, solutions


def played(task: Task, parameters: CountdownParameters, past: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """All winning action sequences without undoing, found by trying every wording in the environment
    itself."""
    environment = Countdown(parameters)
    _, info = environment.reset(task)
    said: list[str] = []
    for action in past:
        *_, info = environment.step(action)
        if info.invalid:
            return set()
        said.append(str(info.action))
    if info.won:
        return {tuple(said)}
    assert isinstance(info.state, CountdownState)
    if len(info.state.pool) == 1:
        return set()
    wins: set[tuple[str, ...]] = set()
    for left, right in set(itertools.permutations(info.state.pool, 2)):
        for operator in OPERATORS:
            wins |= played(task, parameters, (*past, f"op({operator}, {left}, {right})"))
    return wins


@settings(max_examples=25)
@given(st.lists(st.integers(1, 12), min_size=2, max_size=3), st.integers(1, 40))
def test_the_solver_lists_exactly_the_sequences_that_win_in_the_environment(
    parameters: CountdownParameters, numbers: list[int], target: int
) -> None:
    task = Task("t", "countdown", 0, {"target": target, "numbers": numbers})
    found = solutions(tuple(sorted(numbers)), target, 999)
    assert len(set(found)) == len(found)
    assert {tuple(map(str, way)) for way in found} == played(task, parameters)


def test_the_solver_lists_them_for_four_numbers(parameters: CountdownParameters, make_task) -> None:
    task = make_task(24, 4, 4, 7, 8)
    found = {tuple(map(str, way)) for way in solutions((4, 4, 7, 8), 24, 999)}
    assert ("op(-, 8, 7)", "op(*, 4, 1)", "op(*, 4, 4)") not in found  # that makes 16
    assert found == played(task, parameters)


def test_results_beyond_the_largest_number_are_no_way_to_the_target() -> None:
    assert solutions((12, 99, 100), 825, 999) == ()  # 99 * 100 / 12 passes through 9900
    assert len(solutions((12, 99, 100), 825, 9900)) == 1


tasks = st.tuples(st.lists(st.integers(1, 30), min_size=3, max_size=4), st.integers(10, 100)).filter(
    lambda puzzle: bool(solutions(tuple(sorted(puzzle[0])), puzzle[1], 999))
)


@settings(max_examples=60)
@given(tasks, st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 1000), st.integers(3, 30))
def test_every_demonstration_wins_within_the_budget_with_valid_actions_only(
    parameters: CountdownParameters, puzzle: tuple[list[int], int], rate: float, seed: int, max_steps: int
) -> None:
    numbers, target = puzzle
    task = Task("t", "countdown", 0, {"target": target, "numbers": numbers})
    section = parameters.model_copy(update={"max_steps": max_steps})
    words = section.make_oracle()(task, rate, seed)
    assert len(words) <= max_steps
    if rate == 0:
        assert len(words) == len(numbers) - 1
    assert section.make_oracle()(task, rate, seed) == words
    environment = Countdown(section)
    _, info = environment.reset(task)
    for step, word in enumerate(words):
        undo = word in ("rollback", "reset")
        assert isinstance(info.state, CountdownState)
        out_of_reach = not solutions(info.state.pool, target, 999)
        assert undo == out_of_reach, "a demonstration undoes what cannot win, and only that"
        *_, info = environment.step(word)
        assert info.invalid is None
        assert info.won == (step == len(words) - 1)


def test_mistakes_come_at_the_rate_asked_for(parameters: CountdownParameters, worked_example: Task) -> None:
    show = parameters.make_oracle()
    demonstrations = [show(worked_example, 0.1, seed) for seed in range(2000)]
    undone = sum(word in ("rollback", "reset") for words in demonstrations for word in words)
    decisions = sum(map(len, demonstrations)) - undone
    assert undone / decisions == pytest.approx(0.1, abs=0.015)


def test_different_seeds_show_different_solutions(
    parameters: CountdownParameters, worked_example: Task
) -> None:
    shown = {tuple(parameters.make_oracle()(worked_example, 0.0, seed)) for seed in range(300)}
    assert len(shown) == len(solutions((1, 2, 28, 80), 54, 999))


def test_an_unsolvable_task_is_refused_by_name(parameters: CountdownParameters, make_task) -> None:
    with pytest.raises(TaskError, match="999=1,1,1"):
        parameters.make_oracle()(make_task(999, 1, 1, 1), 0.1, 0)
