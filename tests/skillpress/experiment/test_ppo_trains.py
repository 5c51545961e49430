"""A small policy with a value head, end to end in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from skillpress.experiment.params import read_yaml
from tests.support.experiment.small_training import Curve, StoppedError, prepared, train_small

ROOT = Path(__file__).parents[3]
SMALL: dict[str, Any] = {
    "training": {"steps": 4, "learning_rate": 0.003, "checkpoint_every": 2, "minibatches": 2},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"epochs": 4},
    **read_yaml(ROOT / "params" / "ppo.yaml"),
}


def trained(folder: Path, name: str, stop_after: int = 0, processes: int = 1, **training: Any) -> Curve:
    """Train with these changes to the model folder ``name``; returns the curve."""
    changes = {"processes": processes, "training": training}
    return train_small(folder, name, SMALL, changes, stop_after=stop_after)


folder = prepared(SMALL)


@pytest.fixture(scope="module")
def curve(folder: Path) -> Curve:
    return trained(folder, "whole")


def test_values_start_at_0_and_learn(curve: Curve) -> None:
    assert sum(row["success"] for row in curve) > 0, "without a success every return is the same"
    first, *later = [row["value/explained_variance"] for row in curve]
    assert first == 0 and all(later), "values of 0 explain nothing; later ones differ from state to state"
    assert all(row["value/loss"] > 0 and 0 <= row["value/clip_fraction"] <= 1 for row in curve)


def test_every_sample_passes_through_the_model_with_an_advantage_or_without(curve: Curve) -> None:
    assert all(row["tokens_trained"] == row["tokens_sampled"] for row in curve)


def test_it_leaves_a_policy_without_the_head(folder: Path, curve: Curve) -> None:
    start, left = (load_file(folder / name / "model.safetensors") for name in ("start", "whole"))
    assert start.keys() == left.keys()
    assert any(not torch.equal(start[name], left[name]) for name in start)


def test_interrupted_it_goes_on_from_its_checkpoint_to_the_same_bytes(folder: Path, curve: Curve) -> None:
    with pytest.raises(StoppedError):
        trained(folder, "interrupted", stop_after=3)
    (checkpoint,) = (folder / "checkpoints-interrupted").rglob("mp_rank_00_model_states.pt")
    head = torch.load(checkpoint, weights_only=False)["module"]["head.weight"]
    assert bool((head != 0).any()), "what values have learned is in the checkpoint"
    again = trained(folder, "interrupted")
    assert again[2]["value/explained_variance"] == curve[2]["value/explained_variance"]
    first, second = (load_file(folder / name / "model.safetensors") for name in ("whole", "interrupted"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_with_low_rank_changes_the_head_is_trained_beside_them(folder: Path, curve: Curve) -> None:
    lora = trained(folder, "lora", lora={"rank": 4, "alpha": 8}, steps=2)
    assert lora[0]["success"] == curve[0]["success"], "the start policy played the first batch"
    assert lora[1]["value/explained_variance"] != 0


@pytest.mark.thorough
def test_two_processes_train_go_on_from_a_checkpoint_and_end_with_the_same_bytes(folder: Path) -> None:
    trained(folder, "two", processes=2)
    with pytest.raises(StoppedError):
        trained(folder, "two-interrupted", processes=2, stop_after=3)
    trained(folder, "two-interrupted", processes=2)
    first, second = (load_file(folder / name / "model.safetensors") for name in ("two", "two-interrupted"))
    assert all(torch.equal(first[name], second[name]) for name in first)
