"""The comparison of algorithms: budgets, figures by hand, and the tiny size from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks import methods
from benchmarks.methods import Comparison, Played, changed, compare, estimate, last_step, less, variant
from skillpress.experiment.params import load_params
from skillpress.experiment.training import TrainingJob

ROOT = Path(__file__).parents[2]
PLAYED = {1: 40.0, 2: 30.0, 3: 20.0, 4: 10.0}
"""Training step to its environment steps."""


def smoke():
    return load_params(ROOT / "params.yaml", ROOT / "params" / "smoke.yaml")


def trains_from(checkpoint: int, dies_in: int | None = None) -> Callable:
    """A training of these steps after a checkpoint, which may be killed."""

    def train(job: TrainingJob, report) -> None:
        assert job.params.training.steps >= max(PLAYED)
        for step in range(checkpoint + 1, max(PLAYED) + 1):
            report(step, {"environment_steps": PLAYED[step]})
            if step == dies_in:
                raise KeyboardInterrupt

    return train


@pytest.mark.parametrize(("budget", "expected"), [(1.0, 1), (40.0, 1), (40.5, 2), (70.0, 2), (90.0, 3)])
def test_a_training_ends_in_the_first_step_by_which_its_budget_is_spent(
    budget: float, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = variant(smoke(), "rloo", 1.0, tmp_path)
    run.folder.mkdir()
    monkeypatch.setattr(methods, "train", trains_from(0))
    assert last_step(run, budget, Played.read(tmp_path / "played.json")) == expected
    monkeypatch.setattr(methods, "train", None)  # a finished training is not repeated
    assert last_step(run, budget, Played.read(tmp_path / "played.json")) == expected


def test_a_training_that_was_killed_goes_on_counting_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies in its second step, which has no checkpoint yet, so that step is done again."""
    run = variant(smoke(), "rloo", 1.0, tmp_path)
    run.folder.mkdir()
    monkeypatch.setattr(methods, "train", trains_from(0, dies_in=2))
    with pytest.raises(KeyboardInterrupt):
        last_step(run, 80.0, Played.read(tmp_path / "played.json"))
    monkeypatch.setattr(methods, "train", trains_from(1))
    assert last_step(run, 80.0, Played.read(tmp_path / "played.json")) == 3


def test_an_overlay_and_a_learning_rate_make_a_variant(tmp_path: Path) -> None:
    params = changed(smoke(), {"training": {"learning_rate": 0.002}})
    run = variant(params, "reinforce_pp", 0.5, tmp_path)
    assert run.params.algorithm.name == "reinforce_pp" and run.params.training.minibatches == 1
    assert run.params.training.learning_rate == 0.001 and run.folder == tmp_path / "reinforce_pp-0.5"
    assert variant(params, "grpo", 1.0, tmp_path).params.algorithm == params.algorithm


def rows(*values: float) -> list[dict[str, object]]:
    return [{"task_id": f"t{n}", "pass_at_1": v, "area": v / 2} for n, v in enumerate(values)]


def test_with_one_seed_the_interval_is_over_tasks_by_hand() -> None:
    """The mean of 0, 1, 1, 1, 0 is 0.6 and the deviation sqrt(1.2 / 4)."""
    found = estimate([rows(0, 1, 1, 1, 0)], "pass_at_1")
    half = 1.959964 * (1.2 / 4) ** 0.5 / 5**0.5
    assert (found["mean"], found["over"], found["p"]) == (pytest.approx(0.6), "tasks", None)
    assert (found["low"], found["high"]) == (pytest.approx(0.6 - half), pytest.approx(0.6 + half))


def test_with_several_seeds_the_interval_is_over_trainings_too() -> None:
    found = estimate([rows(0, 1, 1, 0), rows(1, 1, 1, 0), rows(1, 1, 1, 1)], "area")
    assert found["mean"] == pytest.approx((0.5 + 0.75 + 1) / 3 / 2) and found["over"] == "seeds and tasks"
    assert found["low"] < found["mean"] < found["high"]


def test_differences_are_taken_task_by_task() -> None:
    assert less([rows(1, 0)], [rows(0.5, 0.5)]) == [rows(0.5, -0.5)]
    with pytest.raises(ValueError, match="shorter"):
        less([rows(1, 0)], [rows(1)])


@pytest.mark.thorough
def test_the_tiny_size_from_end_to_end_and_nothing_is_done_twice(tmp_path: Path) -> None:
    own = {"tasks": {"train": 32, "validation": 8, "test": 8}, "environment": {"max_steps": 6}}
    tuning, reported = (changed(smoke(), own, {"seed": seed}) for seed in (3, 0))
    work = partial(compare, Comparison(2, tmp_path), [reported], tuning, ["expert_iteration"], [1.0])
    found = work()
    assert list(found["algorithms"]) == ["grpo", "expert_iteration"]
    budget = found["algorithms"]["grpo"]["trainings"][0]["environment_steps"]
    for name, each in found["algorithms"].items():
        (done,) = each["trainings"]
        assert done["training_steps"] == 2 or name != "grpo"
        assert done["environment_steps"] >= budget > 2 * 16, "16 episodes a step, of several steps"
        assert 0 <= each["area"]["mean"] <= each["pass_at_1"]["mean"] <= 1
        assert (
            each["seconds_per_step"] > 0
            and each["core_seconds_per_step"] > 0
            and each["peak_memory_mb"] > 100
        )
        assert each["tried"]["1"]["environment_steps"] != done["environment_steps"], "another seed's training"
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert json.dumps(work()) == json.dumps(found)
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert not (tmp_path / "seed-3" / "grpo-1" / "test.json").exists(), (
        "the tuning seed's test tasks have no say"
    )
