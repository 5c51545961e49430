"""Combinations of methods that other tests try alone: they train, and each method's results are there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.experiment.params import merge, read_yaml
from tests.support.experiment.small_training import train_small
from tests.support.programs.training_program import prepare

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
SMALL: dict[str, Any] = {
    "processes": 1,
    "training": {"steps": 3, "learning_rate": 0.003, "checkpoint_every": 5},
    "environment": {"max_steps": 8, "max_numbers": 3},
}
ERL: dict[str, Any] = {
    "policy": {"knowledge_words": 4},
    "experience": {"name": "erl", "distill": 0.5, "kl": 0.5, "retries": 2, "reflection": "own"},
}
LIBRARY: dict[str, Any] = {
    "imitation": {"epochs": 4},
    "training": {"steps": 5},
    "reward": {"shaping": "none"},
    "skills": {"library": {"retrieval": "by_task", "top_k": 2, "every": 1, "new": 2, "teacher": None}},
}
LORA = {"training": {"lora": {"rank": 4, "alpha": 8}}}
LAG = {"training": {"lag": 1}}
REPLAY = {"training": {"replay": {"groups": 3, "staleness": 2}}}
ROUND_LENGTH = {"reward": {"shaping": "round_length"}}


def overlay(algorithm: str) -> dict[str, Any]:
    return read_yaml(ROOT / "params" / f"{algorithm}.yaml")


def prepared(factory: pytest.TempPathFactory, name: str, changes: dict[str, Any]) -> Path:
    path = factory.mktemp(name)
    prepare(path, yaml.safe_dump(merge(SMALL, changes)), demonstrations=2000)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory, "combinations", {})


@pytest.fixture(scope="module")
def with_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose policy has the words of a library."""
    return prepared(tmp_path_factory, "library", LIBRARY)


def check(folder: Path, name: str, column: str, *overlays: dict[str, Any]) -> None:
    curve = train_small(folder, name, SMALL, *overlays)
    assert all(math.isfinite(value) for row in curve for value in row.values())
    assert any(row.get(column) for row in curve), "what is combined is at work"


@pytest.mark.parametrize(
    ("name", "column", "overlays"),
    [
        ("lag", "staleness", [LAG]),
        ("replay", "replay/groups", [REPLAY]),
        ("lag-replay", "replay/groups", [LAG, REPLAY, ROUND_LENGTH]),
    ],
)
def test_ppo_learns_from_rollouts_of_older_weights(
    folder: Path, name: str, column: str, overlays: list[dict[str, Any]]
) -> None:
    check(folder, f"ppo-{name}", column, overlay("ppo"), *overlays)


@pytest.mark.parametrize("algorithm", ["rloo", "gigpo", "ppo", "expert_iteration"])
def test_second_attempts_go_with_other_algorithms(folder: Path, algorithm: str) -> None:
    check(folder, f"erl-{algorithm}", "experience/attempts", overlay(algorithm), ERL)


@pytest.mark.parametrize(("name", "changes"), [("lora", LORA), ("lag", LAG), ("replay", REPLAY)])
def test_second_attempts_go_with_low_rank_changes_a_lag_and_replay(
    folder: Path, name: str, changes: dict[str, Any]
) -> None:
    check(folder, f"erl-{name}", "experience/attempts", ERL, changes)


@pytest.mark.parametrize("algorithm", ["rloo", "gigpo", "ppo", "expert_iteration"])
def test_a_library_goes_with_other_algorithms_and_low_rank_changes(
    with_library: Path, algorithm: str
) -> None:
    check(with_library, f"library-{algorithm}", "library/skills", overlay(algorithm), LIBRARY, LORA)


@pytest.mark.timeout(900)
def test_two_ranks_replay_under_zero_3(folder: Path) -> None:
    """All ranks must make the same number of passes, whichever of them replays more."""
    check(
        folder, "zero-3", "replay/groups", REPLAY, {"processes": 2, "training": {"deepspeed": "zero3_fp32"}}
    )
