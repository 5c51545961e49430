"""Paired tests: identical policies never differ, and the p-values are the textbook's."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from skillpress.core.rollout_files import rollout_frame
from skillpress.evaluation.statistics import EvaluationError, compare, compare_trainings, evaluation_steps
from skillpress.evaluation.statistics.bootstrap import bootstrap
from skillpress.evaluation.statistics.paired import mcnemar


@pytest.fixture
def outcomes(outcomes):
    """The frame as an evaluation's steps."""
    return lambda *wins, **how: evaluation_steps(outcomes(*wins, **how))


def test_a_policy_does_not_differ_from_itself(outcomes):
    frame = outcomes({"a": "101", "b": "010", "c": "111"}, steps=2)
    for test in compare(frame, frame, max_steps=30, seed=0).tests:
        assert test.difference == 0
        assert test.low == -test.high  # other tasks may tell the two apart: three say little
        assert (test.bootstrap_p, test.mcnemar_p, test.only_first, test.only_second) == (1, 1, 0, 0)


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 5), (3, 9), (4, 4), (12, 1)])
def test_mcnemar_is_the_two_sided_binomial_tail(only_first, only_second):
    n, least = only_first + only_second, min(only_first, only_second)
    tail = 2 * sum(comb(n, k) for k in range(least + 1)) / 2**n
    assert mcnemar(only_first, only_second) == pytest.approx(min(1.0, tail))


def test_the_bootstrap_agrees_with_the_enumeration_of_all_resamples():
    differences = [1.0, 1.0, 0.0, 1.0, -1.0, 1.0, 1.0]
    means = np.mean(list(product(differences, repeat=7)), axis=1)
    low, high, p = bootstrap(differences, seed=0)
    assert (low, high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=1e-9)
    assert p == pytest.approx(2 * np.mean(means <= 0), rel=0.1)


def test_the_bootstrap_repeats_with_its_seed_and_only_then():
    differences = np.linspace(-1, 1.2, 50)
    assert bootstrap(differences, 1) == bootstrap(differences, 1)
    assert bootstrap(differences, 1) != bootstrap(differences, 2)


def test_swapping_the_policies_turns_the_difference_round(outcomes):
    weak = outcomes({"a": "100", "b": "000", "c": "111"})
    strong = outcomes({"a": "110", "b": "111", "c": "111"})
    there = compare(weak, strong, max_steps=5, seed=0).tests[-1]
    back = compare(strong, weak, max_steps=5, seed=0).tests[-1]
    assert there.difference == pytest.approx((2 / 3 + 3 / 3 + 1) / 3 - (1 / 3 + 0 + 1) / 3)
    assert back.difference == pytest.approx(-there.difference)
    assert (there.only_first, there.only_second) == (back.only_second, back.only_first) == (0, 1)


def test_votes_are_compared_by_their_verdicts(outcomes):
    """By majority the first policy wins a; the second wins a and b. By the share of episodes they tie."""
    first = outcomes({"a": "111", "b": "100", "c": "000"}, votes=3)
    second = outcomes({"a": "110", "b": "110", "c": "000"}, votes=3)
    comparison = compare(first, second, max_steps=5, seed=0, votes=3)
    assert comparison.tests[-1].difference == 0
    found = comparison.verdicts
    assert found is not None and comparison.votes == 3
    assert found.difference == pytest.approx(1 / 3)
    assert (found.only_first, found.only_second, found.mcnemar_p) == (0, 1, 1)
    assert compare(first, second, max_steps=5, seed=0).verdicts is None


def test_a_win_counts_only_at_budgets_it_fits_into(episode):
    slow, fast = (
        evaluation_steps(rollout_frame([episode("a", 0, ["x"] * length, won=True)])) for length in (8, 4)
    )
    comparison = compare(slow, fast, max_steps=12, seed=0)
    assert {t.budget: t.difference for t in comparison.tests} == {3: 0, 5: 1, 10: 0, 12: 0}


def test_policies_on_different_tasks_are_not_compared(outcomes):
    with pytest.raises(EvaluationError, match="task c was run by one policy only"):
        compare(outcomes({"a": "1"}), outcomes({"a": "1", "c": "1"}), max_steps=3, seed=0)


def test_a_task_that_several_seeds_played_is_one_task(outcomes):
    """The same episodes by three seeds: they say no more than one seed."""
    weak, strong = outcomes({"a": "10", "b": "01", "c": "00"}), outcomes({"a": "11", "b": "01", "c": "10"})
    one = compare(weak, strong, max_steps=5, seed=0)
    three = compare_trainings([weak] * 3, [strong] * 3, max_steps=5, seed=0)
    assert (one.tasks, one.seeds, three.tasks, three.seeds) == (3, 1, 3, 3)
    assert three.first_episodes == 3 * one.first_episodes
    for single, several in zip(one.tests, three.tests, strict=True):
        assert (several.low, several.high, several.bootstrap_p) == (
            single.low,
            single.high,
            single.bootstrap_p,
        )
        assert several.per_seed == (single.difference,) * 3


def test_mcnemar_is_for_a_single_seed_and_other_trainings_for_several(outcomes):
    weak, strong = outcomes({"a": "0", "b": "0"}), outcomes({"a": "1", "b": "0"})
    one = compare(weak, strong, max_steps=3, seed=0).tests[-1]
    two = compare_trainings([weak, weak], [strong, weak], max_steps=3, seed=0).tests[-1]
    assert (one.only_first, one.only_second, one.mcnemar_p, one.trainings) == (0, 1, 1, None)
    assert (two.only_first, two.only_second, two.mcnemar_p) == (None, None, None)
    assert two.trainings is not None and two.trainings.seeds == 2
    assert (one.signs_p, two.signs_p) == (None, 1.0)  # 0.5 and 0 are as far from 0 with any signs
    assert two.per_seed == (0.5, 0)


def test_seeds_may_have_tasks_of_their_own(outcomes):
    first = [outcomes({"a": "0", "b": "0"}), outcomes({"c": "0", "d": "0"})]
    second = [outcomes({"a": "1", "b": "0"}), outcomes({"c": "1", "d": "1"})]
    comparison = compare_trainings(first, second, max_steps=3, seed=0)
    assert comparison.tasks == 4
    assert comparison.tests[-1].difference == pytest.approx(0.75)
    assert comparison.tests[-1].trainings.p == pytest.approx(ttest_1samp([0.5, 1.0], 0).pvalue)


def test_a_seed_without_its_pair_is_refused(outcomes):
    frame = outcomes({"a": "1"})
    with pytest.raises(ValueError, match="trainings must come in pairs, got 2 and 1"):
        compare_trainings([frame, frame], [frame], max_steps=3, seed=0)
