"""Success rates: which episodes count, how runs are averaged, and which rollouts are refused."""

from __future__ import annotations

from statistics import stdev

import polars as pl
import pytest

from skillpress.core import rollout_files
from skillpress.core.intervals import wilson
from skillpress.evaluation.statistics.episodes import (
    EvaluationError,
    check_complete,
    episode_table,
    evaluation_steps,
    pooled,
)
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.success import pass_at_1, self_consistency


def table(frame: pl.DataFrame) -> pl.DataFrame:
    return episode_table(evaluation_steps(frame))


def test_pass_at_1_is_the_mean_over_runs_with_their_sample_deviation(outcomes):
    # digits are runs: run 0 wins a, b; run 1 wins a, b, c; run 2 wins a
    rate = pass_at_1(table(outcomes({"a": "111", "b": "110", "c": "010", "d": "000"})))
    assert rate.per_run == (0.5, 0.75, 0.25)
    assert rate.mean == pytest.approx(0.5)
    assert rate.std == pytest.approx(stdev([0.5, 0.75, 0.25]))
    assert (rate.tasks, rate.episodes) == (4, 12)


def test_a_single_run_has_no_deviation(outcomes):
    assert pass_at_1(table(outcomes({"a": "1"}))).std is None


def test_the_interval_counts_tasks_and_not_repeated_runs_of_them(outcomes):
    once = pass_at_1(table(outcomes({"a": "1", "b": "0"})))
    thrice = pass_at_1(table(outcomes({"a": "111", "b": "000"})))
    assert (once.low, once.high) == (thrice.low, thrice.high)


def test_tasks_that_only_some_seeds_share_count_as_in_the_comparison_of_methods(outcomes):
    """``a`` was played by both seeds, the others by one each: not quite three tasks' worth."""
    frames = [outcomes({"a": "1", "b": "0"}), outcomes({"a": "1", "c": "0"})]
    steps = [evaluation_steps(frame, seed) for seed, frame in enumerate(frames)]
    rate = pass_at_1(episode_table(pooled(steps)))
    shares = [episode_table(one).group_by("task_id").agg(score=pl.col("won").mean()) for one in steps]
    expected = wilson(0.5, Scores.of(shares).effective_tasks())
    assert (rate.low, rate.high, rate.tasks) == (expected.low, expected.high, 3)
    assert rate.high - rate.low > wilson(0.5, 3).high - wilson(0.5, 3).low


def test_self_consistency_takes_the_majority_of_each_task_in_each_run(outcomes):
    # 3 votes: a is won by 2 of 3, b by 1 of 3, c by 3 of 3; Pass@1 counts 6 of 9
    frame = table(outcomes({"a": "110", "b": "001", "c": "111"}, votes=3))
    assert self_consistency(frame, 3).mean == pytest.approx(2 / 3)
    assert pass_at_1(frame).mean == pytest.approx(6 / 9)


def test_self_consistency_of_one_vote_is_pass_at_1(outcomes):
    frame = table(outcomes({"a": "10", "b": "11"}))
    assert self_consistency(frame, 1) == pass_at_1(frame)


def test_an_even_number_of_votes_is_refused_because_it_can_tie(outcomes):
    with pytest.raises(ValueError, match="SC@2: votes must be odd"):
        self_consistency(table(outcomes({"a": "10"}, votes=2)), 2)


@pytest.mark.parametrize(
    ("wins", "tasks", "runs", "message"),
    [
        ({"a": "11", "b": "1"}, ["a", "b"], 2, r"task b has 0 episodes in run-1, must have 1 \(1 such"),
        ({"a": "1"}, ["a", "z"], 1, "task z has 0 episodes in run-0"),
        ({"a": "1", "x": "1"}, ["a"], 1, "task x was run but is not in the task list"),
        ({"a": "11"}, ["a"], 3, "3 runs were asked for, but the rollouts hold 2: run-0, run-1"),
    ],
)
def test_an_evaluation_that_is_not_every_task_in_every_run_is_refused(outcomes, wins, tasks, runs, message):
    with pytest.raises(EvaluationError, match=message):
        check_complete(table(outcomes(wins)), tasks, runs, votes=1)


def test_a_task_that_was_run_too_often_is_named_with_its_count(outcomes):
    with pytest.raises(EvaluationError, match="task a has 3 episodes in run-0, must have 1"):
        check_complete(table(outcomes({"a": "110"}, votes=3)), ["a"], runs=1, votes=1)


def test_an_episode_written_twice_is_refused(outcomes):
    frame = outcomes({"a": "1"}, steps=2)
    with pytest.raises(EvaluationError, match="task a of run-0, rollout 0: its 4 steps are not numbered"):
        table(pl.concat([frame, frame]))


def test_the_order_of_the_rows_does_not_matter(outcomes):
    frame = outcomes({"a": "110", "b": "011"}, steps=3)
    assert table(frame.reverse()).equals(table(frame))


def test_steps_are_read_a_few_episodes_at_a_time_to_the_same_table(outcomes, monkeypatch):
    frame = outcomes({"b": "110", "a": "011"}, steps=3)
    whole = table(frame)
    monkeypatch.setattr(rollout_files, "ROW_GROUP", 4)
    assert table(frame).equals(whole)
    assert evaluation_steps(frame).counts(pl.col("won")) == {True: 12, False: 6}


def test_an_episode_in_two_places_is_refused(outcomes, monkeypatch):
    monkeypatch.setattr(rollout_files, "ROW_GROUP", 1)
    frame = outcomes({"a": "1", "b": "0"})
    with pytest.raises(EvaluationError, match="task a of run-0, rollout 0 is in several places"):
        table(pl.concat([frame, frame]))


def test_pooled_trainings_keep_their_seeds_and_their_order(outcomes):
    frame = outcomes({"a": "1", "b": "0"})
    one, other = evaluation_steps(frame, 7), evaluation_steps(frame, 3)
    of_a = pooled([one, other]).filter(pl.col("task_id") == "a")
    assert episode_table(of_a).select("training_seed", "task_id").rows() == [(7, "a"), (3, "a")]
