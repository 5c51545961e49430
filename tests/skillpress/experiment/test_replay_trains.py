"""Trainings that learn again from groups of earlier steps: the groups' ages, and the correction for these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from safetensors.torch import load_file

from skillpress.core.rollout_files import read_rollouts
from skillpress.experiment.training import train
from tests.support.experiment.small_training import prepared
from tests.support.programs.training_program import job

SMALL: dict[str, Any] = {
    "training": {"steps": 5, "learning_rate": 0.01, "checkpoint_every": 3, "tasks_per_step": 3},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"epochs": 4},
}


folder = prepared(SMALL)


def trained(folder: Path, name: str, algorithm: dict[str, Any], **training: Any) -> list[dict[str, float]]:
    """The curve of a training with these keys."""
    overlay = {**SMALL, "training": {**SMALL["training"], **training}, "algorithm": algorithm}
    (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))
    return train(job(folder, name))


def column(curve: list[dict[str, float]], name: str) -> list[float | None]:
    return [row.get(name) for row in curve]


def test_a_step_learns_from_new_groups_and_some_of_the_last_steps(folder: Path) -> None:
    plain = trained(folder, "plain", {})
    curve = trained(folder, "replaying", {}, replay={"groups": 4, "staleness": 2})
    assert column(curve, "replay/groups") == [0, 3, 4, 4, 4], "three are there after the first step"
    assert curve[0] == {**plain[0], **_times(curve[0]), "replay/groups": 0.0}, "nothing to replay yet"
    assert curve[0]["staleness"] == 0 < curve[1]["staleness"] < 1, "three groups of six are one step old"
    assert all(0 < row["staleness"] < 2 for row in curve[1:])
    assert all(row["kept"] == 1.0 for row in curve), "of what was played"
    assert column(curve, "mismatch/mean").count(None) == 0, "the new ones are compared at every step"
    assert all(row["mismatch/largest"] < 1e-4 for row in curve), "and the old ones are not"
    assert "replay/groups" not in plain[0] and set(column(plain, "staleness")) == {0.0}
    without, trained_again = (
        load_file(folder / name / "model.safetensors") for name in ("plain", "replaying")
    )
    assert any(not without[name].equal(trained_again[name]) for name in without), "what is replayed teaches"


def _times(row: dict[str, float]) -> dict[str, float]:
    """The metrics of time, which differ from run to run."""
    return {name: value for name, value in row.items() if "second" in name or name.startswith("time_share")}


def test_importance_weights_correct_for_the_age_of_what_is_replayed(folder: Path) -> None:
    curve = trained(folder, "weighted", {"importance": "token"}, replay={"groups": 3, "staleness": 1})
    new, mixed = [], []
    for row in curve:
        if "importance/token_ratio_p99" in row:  # there was something to learn
            spread = row["importance/token_ratio_p99"] - row["importance/token_ratio_p01"]
            (mixed if row["staleness"] else new).append(spread)
    assert max(new, default=0.0) < 1e-4 < 0.01 < max(mixed)


def test_with_a_lag_a_groups_age_counts_from_the_weights_that_played_it(folder: Path) -> None:
    """A checkpoint follows step 3, so the weights that play are 0, 0, 1, 3, 3. In step 4 the learner has
    weights 3, and groups that weights 0 played (steps 1 and 2) are too old, so three groups of step 3 are
    left. In step 5, with weights 4, the groups of step 3 are too old as well."""
    curve = trained(folder, "behind", {}, lag=1, replay={"groups": 3, "staleness": 2})
    assert column(curve, "replay/groups") == [0, 3, 3, 3, 3]
    assert curve[0]["staleness"] == 0 and all(row["staleness"] <= 2 for row in curve)


def test_the_buffer_holds_what_a_method_may_correct_for(folder: Path) -> None:
    training = job(folder, "kept")
    trained(folder, "kept", {}, steps=2, checkpoint_every=1, replay={"groups": 3, "staleness": 1})
    found = sorted(training.checkpoints.folder.parent.glob("*/rank-0/replay-*.parquet"))
    assert [path.stem for path in found] == ["replay-00000001", "replay-00000002"]
    episodes = read_rollouts(found[0])
    assert len(episodes) == 3 * 4 and all(each.policy_version == 0 for each in episodes)
    steps = [step for each in episodes for step in each.steps]
    assert all(step.prompt_ids and len(step.logprobs) for step in steps)
