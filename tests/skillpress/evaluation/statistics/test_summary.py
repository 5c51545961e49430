"""The whole evaluation of one policy."""

from __future__ import annotations

import json

import pytest

from skillpress.core.rollout_files import scan_rollouts, write_rollouts
from skillpress.core.trajectory import Task
from skillpress.evaluation.statistics import EvaluationError, EvaluationSummary, evaluate, evaluation_steps


@pytest.fixture
def outcomes(outcomes):
    """The frame as an evaluation's steps."""
    return lambda *wins, **how: evaluation_steps(outcomes(*wins, **how))


def tasks(**strata):
    return [Task(name, "environment", 0, {}, "test", stratum) for name, stratum in strata.items()]


def test_strata_split_the_tasks_and_their_episodes(outcomes):
    frame = outcomes({"a": "11", "b": "10", "c": "00"})
    summary = evaluate(frame, tasks(a="easy", b="easy", c="hard"), runs=2, votes=1, max_steps=4)
    assert summary.strata["easy"].mean == pytest.approx(3 / 4)
    assert summary.strata["hard"].mean == 0
    assert sum(s.episodes for s in summary.strata.values()) == summary.pass_at_1.episodes == 6


def test_a_class_holds_the_classes_within_it(outcomes):
    frame = outcomes({"a": "111", "b": "110", "c": "001"}, votes=3)
    strata = tasks(a="iid/clean", b="ood/clean", c="ood/look")
    summary = evaluate(frame, strata, runs=1, votes=3, max_steps=4)
    assert list(summary.strata) == ["iid", "iid/clean", "ood", "ood/clean", "ood/look"]
    assert summary.strata["ood"].mean == pytest.approx(3 / 6)
    assert summary.strata_self_consistency["ood"].mean == pytest.approx(1 / 2)  # two of three, one of three
    assert summary.strata_self_consistency["ood"].tasks == 2


def test_a_summary_survives_json(outcomes):
    written = evaluate(outcomes({"a": "1"}), tasks(a=""), runs=1, votes=1, max_steps=4)
    assert EvaluationSummary.from_json(json.loads(json.dumps(written.to_json()))) == written


def test_a_file_on_disk_is_evaluated_lazily_to_the_same(outcomes, episode, tmp_path):
    trajectories = [episode("a", 0, ["x", "y"], won=True), episode("b", 0, ["x"], won=False)]
    write_rollouts(tmp_path / "evaluation.parquet", trajectories)
    steps = evaluation_steps(scan_rollouts(tmp_path / "evaluation.parquet"))
    summary = evaluate(steps, tasks(a="", b=""), runs=1, votes=1, max_steps=4)
    assert summary.pass_at_1.mean == 0.5
    assert summary.success_lengths == {2: 1}


def test_no_tasks_are_no_evaluation(outcomes):
    with pytest.raises(EvaluationError, match="no tasks"):
        evaluate(outcomes({"a": "1"}), [], runs=1, votes=1, max_steps=4)


def test_an_incomplete_evaluation_gives_no_summary(outcomes):
    with pytest.raises(EvaluationError, match="task b has 0 episodes in run-0, must have 1"):
        evaluate(outcomes({"a": "1"}), tasks(a="", b=""), runs=1, votes=1, max_steps=4)
