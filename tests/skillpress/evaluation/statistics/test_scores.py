"""Which scores count as one task, whether seeds share their tasks or not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from skillpress.evaluation.statistics.scores import Scores

NONE = np.nan


def frame(**scores: float) -> pl.DataFrame:
    return pl.DataFrame({"task_id": list(scores), "score": list(scores.values())})


def test_every_seed_is_a_row_and_every_task_a_column():
    scores = Scores.of([frame(a=1.0, b=0.5), frame(c=0.25, a=0.0)])
    assert np.array_equal(scores.values, [[1, 0.5, NONE], [0, NONE, 0.25]], equal_nan=True)
    assert (scores.seeds, scores.tasks) == (2, 3)
    assert scores.tasks_per_seed().tolist() == [2, 2]


def test_the_mean_is_that_of_the_seeds_means_however_many_tasks_each_has():
    scores = Scores(np.array([[1, 1, 1, 0, NONE], [NONE, NONE, NONE, NONE, 0.25]]))
    assert scores.mean() == pytest.approx((0.75 + 0.25) / 2)


def test_crossed_a_tasks_value_is_its_mean_over_the_seeds():
    values = np.random.default_rng(0).random((3, 20))
    assert Scores(values).per_task() == pytest.approx(values.mean(axis=0))
    assert Scores(values).effective_tasks() == pytest.approx(20)


def test_a_task_that_identical_seeds_played_says_no_more_than_once_played():
    once = np.random.default_rng(0).random((1, 20)).round(3)
    assert Scores(np.repeat(once, 5, axis=0)).per_task() == pytest.approx(once[0])


def test_nested_the_values_scatter_within_seeds_alone():
    """Seeds whose tasks all agree have no scatter, however far the seeds are apart."""
    values = np.array([[1, 1, NONE, NONE], [NONE, NONE, -0.5, -0.5]])
    assert Scores(values).per_task() == pytest.approx([0.25] * 4)
    assert Scores(values).effective_tasks() == pytest.approx(4)


def test_any_pattern_has_the_variance_of_independent_tasks():
    """Brute force: scores are a task's own draw; the variance of the mean over many draws."""
    chance = np.random.default_rng(0)
    played = np.array([[1] * 30 + [0] * 10, [0] * 20 + [1] * 20]).astype(bool)  # ten tasks are shared
    draws = np.repeat(chance.normal(size=(4000, 1, 40)), 2, axis=1) + 0.5 * chance.normal(size=(4000, 2, 40))
    means = [Scores(np.where(played, draw, NONE)).mean() for draw in draws]
    found = [Scores(np.where(played, draw, NONE)).per_task().var(ddof=1) / 40 for draw in draws[:500]]
    assert np.mean(found) == pytest.approx(np.var(means), rel=0.06)


def test_unequal_weights_count_as_fewer_tasks():
    """One seed with 1 task and one with 3: weights 1/2 and 1/6 each."""
    values = np.array([[1, NONE, NONE, NONE], [NONE, 1, 1, 1]])
    assert Scores(values).effective_tasks() == pytest.approx(1 / (1 / 4 + 3 / 36))
