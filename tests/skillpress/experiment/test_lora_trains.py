"""A small policy trained by low-rank changes, end to end in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file

from skillpress.models.policy import load_policy
from tests.support.experiment.small_training import Curve, StoppedError, prepared, train_small

SMALL: dict[str, Any] = {
    "training": {"steps": 4, "learning_rate": 0.01, "checkpoint_every": 2, "keep": "best"},
    "algorithm": {"kl_coefficient": 0.05},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"epochs": 4},
}


def trained(folder: Path, name: str, stop_after: int = 0, **training: Any) -> Curve:
    """Train with these changes to the model folder ``name``; returns the curve."""
    return train_small(folder, name, SMALL, {"training": training}, stop_after=stop_after)


folder = prepared(SMALL)


@pytest.fixture(scope="module")
def curve(folder: Path) -> Curve:
    return trained(folder, "whole", lora={"rank": 4, "alpha": 8})


def test_its_first_step_plays_and_compares_the_start_policy_itself(folder: Path, curve: Curve) -> None:
    (full,) = trained(folder, "full", steps=1)
    for name in ("success", "mismatch/mean", "mismatch/largest"):
        assert curve[0][name] == full[name]
    assert curve[0]["reference_kl"] != full["reference_kl"], "four updates in, they have gone other ways"


def test_the_engine_samples_from_what_the_learner_trains(curve: Curve) -> None:
    assert [row["step"] for row in curve] == [1, 2, 3, 4]
    assert all(row["mismatch/largest"] < 1e-4 for row in curve)
    assert curve[-1]["reference_kl"] > 0, "it has left the start policy, which is kept nowhere else"


def test_it_leaves_a_whole_model_and_beside_it_the_adapter_that_peft_loads(
    folder: Path, curve: Curve
) -> None:
    start, whole = load_policy(folder / "start").model, load_policy(folder / "whole").model
    base, merged = start.state_dict(), whole.state_dict()
    still = {name for name in base if torch.equal(base[name], merged[name])}
    assert still == {name for name in base if "_proj" not in name}, "embeddings, norms and head"
    loaded = peft.PeftModel.from_pretrained(start, folder / "whole" / "adapter")
    tokens = torch.arange(2, 12)[None]
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens).logits, whole(tokens).logits, atol=1e-5, rtol=1e-5)


def test_interrupted_it_goes_on_from_its_checkpoint_to_the_same_bytes(folder: Path, curve: Curve) -> None:
    section = {"rank": 4, "alpha": 8}
    with pytest.raises(StoppedError):
        trained(folder, "interrupted", stop_after=3, lora=section)
    (checkpoint,) = (folder / "checkpoints-interrupted").rglob("mp_rank_00_model_states.pt")
    names = torch.load(checkpoint, weights_only=False)["module"]
    assert names and all("lora_" in name for name in names), "the start policy is no part of a checkpoint"
    again = trained(folder, "interrupted", lora=section)
    assert [row["step"] for row in again] == [1, 2, 3, 4]
    for file in ("model.safetensors", "adapter/adapter_model.safetensors"):
        first, second = (load_file(folder / name / file) for name in ("whole", "interrupted"))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)
