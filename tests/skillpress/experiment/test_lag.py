"""Trainings whose rollouts are some steps behind, in this process: the weights that played each step."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import yaml

from skillpress.experiment.training import train
from skillpress.training.loop.mismatch import MismatchError
from tests.support.experiment.killed_training import same_weights
from tests.support.experiment.small_training import StoppedError, prepared, train_small
from tests.support.programs.training_program import job

SMALL = {
    "training": {"steps": 5, "learning_rate": 0.01, "checkpoint_every": 3},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"epochs": 4},
}


folder = prepared(SMALL)


def trained(
    folder: Path, name: str, algorithm: dict[str, object], **training: float
) -> list[dict[str, float]]:
    """The curve of a training with these keys."""
    overlay = {**SMALL, "training": {**SMALL["training"], **training}, "algorithm": algorithm}
    (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))
    return train(job(folder, name))


def repeatable(curve: list[dict[str, float]]) -> list[dict[str, float]]:
    """The curve without its times."""
    timed = ("seconds/", "time_share/", "environment_steps_per_second")
    return [{name: value for name, value in row.items() if not name.startswith(timed)} for row in curve]


def column(curve: list[dict[str, float]], name: str) -> list[float | None]:
    return [row.get(name) for row in curve]


def test_batches_are_one_step_old_but_for_the_first_and_those_after_checkpoints(folder: Path) -> None:
    plain, behind = trained(folder, "plain", {}), trained(folder, "behind", {}, lag=1)
    assert column(plain, "staleness") == [0, 0, 0, 0, 0]
    assert column(behind, "staleness") == [0, 1, 1, 0, 1], "a checkpoint follows step 3"
    assert behind[0]["success"] == plain[0]["success"], "the start plays the first batch"
    compared = [row["step"] for row in behind if "mismatch/mean" in row]
    assert compared == [1, 4], "where engine and learner have the same weights"
    assert all(row.get("mismatch/largest", 0) < 1e-4 for row in behind)
    shares = [[row[f"time_share/{name}"] for name in ("engine", "environments", "learner")] for row in plain]
    assert all(min(row) > 0 and sum(row) <= 1 for row in shares), "without a lag one after the other"
    for name in ("engine", "environments", "learner"):
        assert all(0 <= row[f"time_share/{name}"] <= 1 for row in behind), name
    assert behind[4]["time_share/engine"] == 0, "the last batch was played in the step before"


@pytest.mark.parametrize(
    ("lag", "checkpoints", "ages"),
    [(2, 3, [0, 1, 2, 0, 1]), (3, 5, [0, 1, 2, 3, 3])],
    ids=["lag 2, a checkpoint after step 3", "lag 3, none"],
)
def test_the_age_of_batches_grows_to_the_lag_and_the_same_seed_gives_the_same_curve(
    lag: int, checkpoints: int, ages: list[float], folder: Path
) -> None:
    keys = {"lag": lag, "checkpoint_every": checkpoints}
    first = trained(folder, f"lag-{lag}", {"importance": "token"}, **keys)
    assert column(first, "staleness") == column(first, "staleness_oldest") == ages
    compared = {row["step"] for row in first if "mismatch/mean" in row}
    assert {1} <= compared <= {number for number, age in enumerate(ages, 1) if not age}
    second = trained(folder, f"lag-{lag}-again", {"importance": "token"}, **keys)
    assert repeatable(second) == repeatable(first)
    assert same_weights(folder, f"lag-{lag}", f"lag-{lag}-again")


def test_a_training_stopped_after_a_checkpoint_resumes_with_the_same_curve_and_weights(folder: Path) -> None:
    """It is stopped after step 4, when batch 5 has been begun; the checkpoint follows step 3."""
    keys = {**SMALL, "training": {**SMALL["training"], "lag": 2, "probe": {"every": 1, "tasks": 4}}}
    whole = train_small(folder, "whole", keys)
    with pytest.raises(StoppedError):
        train_small(folder, "stopped", keys, stop_after=4)
    assert repeatable(train_small(folder, "stopped", keys)) == repeatable(whole)
    assert same_weights(folder, "whole", "stopped")


def test_importance_weights_count_what_older_weights_sampled_otherwise(folder: Path) -> None:
    curve = trained(folder, "weighted", {"importance": "token"}, lag=1)
    old = {row["staleness"]: [] for row in curve}
    for row in curve:
        if "importance/token_ratio_p99" in row:  # there was something to learn
            old[row["staleness"]].append(
                row["importance/token_ratio_p99"] - row["importance/token_ratio_p01"]
            )
    assert max(old[0]) < 1e-4 < 0.01 < max(old[1])


@pytest.mark.timeout(300)
def test_an_error_of_the_learner_ends_the_rollouts_beside_it(folder: Path) -> None:
    """The learner is in bfloat16 and differs from its engine in the first step by more than the limit."""
    with pytest.raises(MismatchError, match="in training step 1 "):
        trained(folder, "stopped", {}, lag=1, mismatch_limit=1e-5, deepspeed="zero1_bf16")
    for thread in threading.enumerate():
        if thread.name.startswith("plays ahead"):  # it is about to end
            thread.join(30)
            assert not thread.is_alive()
