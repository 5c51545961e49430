"""What the wins of a task differ in says what a segmentation cost can choose."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.sequence_files import write_sequences
from skillpress.core.trajectory import SkillSequence
from skillpress.evaluation.analysis.choice import (
    CORRELATION,
    LENGTH,
    Ways,
    _agreement,
    _jackknife,
    _sums,
    choice,
    read_wins,
)
from skillpress.experiment.params import load_params
from skillpress.pipeline.settings import ROOT
from skillpress.skills.parameters import SkillParameters

ALPHABET = tuple("ABCDEFGHIJKLMNOP")
SKILLS = load_params(ROOT / "params.yaml").skills
ROUTINE = tuple("ABCD")


def private(task: int, length: int) -> tuple[str, ...]:
    """A win that is one task's own: skills that no other task has in this order."""
    return tuple(Random(task).choices(ALPHABET[4:], k=length))


def by_both(tasks: int, length: int, times: int = 1) -> dict[str, list[tuple[str, ...]]]:
    """Every task is won by the routine of all, and ``times`` by a way of its own."""
    return {f"t{task}": [ROUTINE, *[private(task, length)] * times] for task in range(tasks)}


def test_wins_that_are_all_alike_leave_nothing_to_choose() -> None:
    found = choice({f"t{task}": [ROUTINE] * 3 for task in range(8)}, ALPHABET, SKILLS, 4, 0.5, seed=0)
    assert (found.tasks, found.won_twice, found.differ, found.deviation) == (8, 8, 0, 0.0)
    assert found.of_length is None and found.of_others is None


def test_tasks_won_once_or_never_have_nothing_to_compare() -> None:
    found = choice({"once": [ROUTINE], "never": []}, ALPHABET, SKILLS, 16, 0.5, seed=0)
    assert found.tasks == 2 and found.won_twice == 0 and found.deviation is None


def test_ways_of_one_length_differ_in_reuse_alone() -> None:
    found = choice(by_both(16, length=4), ALPHABET, SKILLS, 16, 0.5, seed=0)
    assert found.differ == found.won_twice == 16
    assert found.of_length == 0.0
    assert found.of_others == pytest.approx(1.0)


def test_ways_are_counted_by_order_length_and_cost() -> None:
    """The routine is one phrase. Four other skills, or its own in another order, are four."""
    wins = {
        **{f"again{task}": [ROUTINE, ROUTINE] for task in range(8)},
        "longer": [ROUTINE, tuple("EFGHIJ")],
        "other": [ROUTINE, tuple("EFGH")],
        "order": [ROUTINE, tuple("DCBA")],
        "equal": [tuple("IJKL"), tuple("MNOP"), tuple("IJKL")],
    }
    found = choice(wins, ALPHABET, SKILLS, len(wins), 0.5, seed=0)
    assert found.ways == Ways(several=4, equal_length=3, differ=2)


def test_the_deviation_is_that_within_tasks() -> None:
    """One segment for the routine and four for the other way: a deviation of 3 / sqrt(2) in each task."""
    found = choice(by_both(16, length=4), ALPHABET, SKILLS, 16, 0.5, seed=0)
    assert found.deviation == pytest.approx(3 / 2**0.5)


def test_what_a_task_repeats_is_cheap_by_itself_and_not_by_what_others_do() -> None:
    """A short way of its own, won 8 times: a phrase of the batch, not of the other tasks."""
    wins = {name: [tuple("ABCDABCD"), *own[1:]] for name, own in by_both(4, length=4, times=8).items()}
    found = choice(wins, ALPHABET, SKILLS, 4, 0.5, seed=0)
    assert found.of_others is not None and found.of_others < 0


def test_where_nothing_recurs_length_is_all_that_counts() -> None:
    wins = {f"t{task}": [private(task, 3), private(100 + task, 6)] for task in range(4)}
    found = choice(wins, ALPHABET, replaced(search="singletons"), 4, 0.5, seed=0)
    assert found.of_length == pytest.approx(1.0)


def test_where_the_shared_way_is_longer_length_prefers_the_other() -> None:
    wins = {f"t{task}": [ROUTINE * 2, private(task, 6)] for task in range(16)}
    found = choice(wins, ALPHABET, SKILLS, 16, 0.5, seed=0)
    assert found.of_length == pytest.approx(-1.0)


def replaced(**values: object) -> SkillParameters:
    return SkillParameters.model_validate({**SKILLS.model_dump(), **values})


def test_wins_are_those_of_every_task_lost_ones_included(tmp_path: Path) -> None:
    played = [("a", 0, True, ("A",)), ("a", 1, True, ("A", "B")), ("b", 0, False, ("B",))]
    write_sequences(tmp_path / "sequences.parquet", [SkillSequence(*row) for row in played])
    assert read_wins(tmp_path / "sequences.parquet") == {"a": [("A",), ("A", "B")], "b": []}


@given(st.integers(0, 2**32), st.integers(2, 20), st.integers(1, 5))
def test_figures_keep_their_ranges_and_repeat(seed: int, tasks: int, batch: int) -> None:
    random = Random(seed)
    wins = {
        str(task): [
            tuple(random.choices(ALPHABET, k=random.randint(1, 6))) for _ in range(random.randint(0, 4))
        ]
        for task in range(tasks)
    }
    found = choice(wins, ALPHABET, SKILLS, batch, 0.5, seed)
    assert found == choice(wins, ALPHABET, SKILLS, batch, 0.5, seed)
    assert found.differ <= found.won_twice <= found.tasks == tasks
    assert found.of_length is None or abs(found.of_length) <= 1 + 1e-9
    assert found.of_others is None or abs(found.of_others) <= 1 + 1e-9
    for value, ends in (
        (found.deviation, found.deviation_interval),
        (found.of_length, found.of_length_interval),
        (found.of_others, found.of_others_interval),
    ):
        assert ends is None or (value is not None and ends.low <= value <= ends.high)


def test_one_task_has_figures_and_no_interval() -> None:
    found = choice({"t": [ROUTINE, private(0, 4)]}, ALPHABET, replaced(search="singletons"), 4, 0.5, seed=0)
    assert found.differ == 0 and found.deviation_interval is None
    found = choice({"t": [ROUTINE, private(0, 6)]}, ALPHABET, replaced(search="singletons"), 4, 0.5, seed=0)
    assert found.differ == 1 and found.of_length == pytest.approx(1.0)
    assert found.of_length_interval is None and found.of_others_interval is None


def test_the_interval_is_that_of_figures_without_one_task_at_a_time() -> None:
    """Under singletons segments are lengths. The deviation of four tasks of two wins each, by hand."""
    wins = {f"t{task}": [("A",) * 2, ("A",) * (2 + task)] for task in range(1, 5)}
    found = choice(wins, ALPHABET, replaced(search="singletons"), 16, 0.5, seed=0)
    squares = [task**2 / 2 for task in range(1, 5)]  # of differences d the deviations from the mean are d/2
    without = np.array([np.sqrt((sum(squares) - one) / 3) for one in squares])
    error = np.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    assert found.deviation == pytest.approx(np.sqrt(sum(squares) / 4))
    assert found.deviation_interval is not None
    half = 3.182446305284263 * error  # Student's t with 3 degrees of freedom
    assert found.deviation_interval.high == pytest.approx(found.deviation + half)
    assert found.deviation_interval.low == pytest.approx(max(0.0, found.deviation - half))


def test_intervals_over_tasks_contain_the_truth_in_some_95_of_100_samples() -> None:
    """Wins of 20 tasks whose segments and lengths are normal with a correlation of 0.8."""
    random, covered = np.random.default_rng(0), 0
    for _ in range(400):
        drawn = [random.multivariate_normal((0, 0), ((1, 0.8), (0.8, 1)), size=6).T for _ in range(20)]
        sums = np.array([_sums(list(one), list(other), list(one)) for one, other in drawn])
        ends = _jackknife(sums, lambda each: _agreement(each, LENGTH), 20, CORRELATION)
        assert ends is not None
        covered += ends.low <= 0.8 <= ends.high
    assert 0.91 < covered / 400 < 0.98
