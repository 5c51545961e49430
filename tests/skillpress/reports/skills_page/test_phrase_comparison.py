"""Intervals of a comparison hold together, however many phrases there are and however tasks link traces."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skillpress.reports.skills_page.comparison import GroupComparison, compare, newcombe
from skillpress.reports.skills_page.routines import Usage, holdings
from skillpress.skills.fit import fit

ALPHABET = tuple("abcdefgh")
HABITS = (tuple("abc"), tuple("def"), tuple("adgh"), tuple("ccbe"), tuple("fgh"), tuple("bahe"))


def test_newcombes_own_example() -> None:
    """56 of 70 against 48 of 80 (Newcombe 1998, Table II, method 10)."""
    low, high = newcombe((56 / 70, 48 / 80), (70, 80), stats.norm.ppf(0.975))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def held(columns: list[list[int]]) -> Usage:
    """Which phrases each trace holds, a row per trace."""
    times = np.array(columns, np.uint16)
    phrases = tuple((f"{number}", "x") for number in range(times.shape[1]))
    return Usage(phrases, np.arange(len(times)), times)


def groups(first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    members = np.array([True] * first + [False] * second)
    return members, ~members


def test_the_difference_is_one_of_shares() -> None:
    used = held([[1], [3], [0], [1], [0], [0]])
    found = compare(used, *groups(4, 2), [""] * 6, ("a", "b"))
    (contrast,) = found.contrasts
    assert (contrast.first, contrast.second, contrast.difference) == (0.75, 0.0, 0.75)
    assert found.traces == (4, 2) and found.tasks == 6


def test_more_phrases_make_every_interval_wider() -> None:
    row = [[1], [1], [1], [0]] * 10 + [[0], [0], [1], [0]] * 10
    alone = compare(held(row), *groups(40, 40), [""] * 80, ("a", "b")).contrasts[0]
    beside = compare(held([each * 50 for each in row]), *groups(40, 40), [""] * 80, ("a", "b")).contrasts[0]
    assert alone.separates
    assert beside.low < alone.low < alone.high < beside.high


def test_traces_of_one_task_count_as_one_where_they_agree() -> None:
    used, members = held([[1]] * 30 + [[0]] * 30), groups(30, 30)
    independent = compare(used, *members, [""] * 60, ("a", "b"))
    tied = compare(used, *members, [str(place // 10) for place in range(60)], ("a", "b"))
    assert tied.tasks == 6 and tied.contrasts[0].low < independent.contrasts[0].low


def test_one_task_alone_ties_nothing() -> None:
    used, members = held([[1]] * 5 + [[0]] * 5), groups(5, 5)
    one = compare(used, *members, ["t"] * 10, ("a", "b"))
    assert one.contrasts == compare(used, *members, [""] * 10, ("a", "b")).contrasts


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(ValueError, match="b has 0"):
        compare(held([[1]]), np.array([True]), np.array([False]), [""], ("a", "b"))


def simulated(chance: np.random.Generator, tasks: int, repeats: int, effect: float) -> GroupComparison:
    """A made-up log, its label-blind dictionary and its comparison.

    With several traces a task, both the habits and the success rate differ from task to task. Only ``effect``
    connects them: it is how much more often a trace with the first habit succeeds.
    """
    sequences, won, names = [], [], []
    for task in range(tasks):
        habits = chance.dirichlet(np.ones(len(HABITS)) * (0.5 if repeats > 1 else 50))
        level = chance.beta(0.5, 0.5) if repeats > 1 else 0.4
        for _ in range(repeats):
            skills: list[str] = []
            for _ in range(chance.integers(1, 5)):
                skills += HABITS[chance.choice(len(HABITS), p=habits)]
                skills += [ALPHABET[chance.integers(8)]] * (chance.random() < 0.3)
            sequences.append(tuple(skills))
            won.append(chance.random() < level + effect * ("abc" in "".join(skills)))
            names.append(f"task {task}" if repeats > 1 else "")
    succeeded = np.array(won)
    dictionary = fit(sequences, ALPHABET, 6, "refined")
    return compare(holdings(dictionary, sequences), succeeded, ~succeeded, names, ("successes", "failures"))


@pytest.mark.parametrize(("tasks", "repeats"), [(60, 1), (20, 8)])
def test_the_family_wise_error_is_kept(tasks: int, repeats: int) -> None:
    """Success is independent of the habits: a phrase may separate in one log of twenty at most."""
    logs = 200
    found = [simulated(np.random.default_rng([tasks, log]), tasks, repeats, 0.0) for log in range(logs)]
    assert np.mean([len(each.contrasts) for each in found]) > 4, "several phrases are looked at"
    wrong = sum(bool(each.separating) for each in found)
    assert wrong <= stats.binom.ppf(0.999, logs, 0.05), f"{wrong} of {logs} logs"


def test_a_phrase_that_makes_successes_is_found() -> None:
    found = [simulated(np.random.default_rng(log), 300, 1, 0.4) for log in range(5)]
    for each in found:
        assert "abc" in {"".join(contrast.phrase)[:3] for contrast in each.separating}
        assert all(
            contrast.difference > 0 for contrast in each.separating if "abc" in "".join(contrast.phrase)
        )
