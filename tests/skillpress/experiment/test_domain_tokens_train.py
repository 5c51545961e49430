"""A language model with words as tokens of their own, trained by low-rank changes, end to end in this
process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import yaml
from safetensors.torch import load_file

from skillpress.experiment.experiment import Experiment
from skillpress.models.policy import load_policy
from skillpress.models.policy.domain_tokens import added_tokens
from tests.support.experiment.small_training import Curve, StoppedError, train_small
from tests.support.models.folders import llama, write_folder
from tests.support.programs.training_program import parameters, prepare

SMALL: dict[str, Any] = {
    "environment": {"max_steps": 2, "max_numbers": 3},
    "policy": {"rendering": "text", "context_tokens": 1700, "domain_tokens": ["markers", "actions"]},
    "sampling": {"max_new_tokens": 8},
    "reward": {"invalid_penalty": 1.0},  # an untrained model's answers are not actions
    # Later penalties count for earlier steps, so the first step has another advantage than the second.
    "algorithm": {
        "name": "reinforce_pp", "discount": 1.0, "kl_coefficient": 0.1, "select": {"name": "none"},
    },
    "training": {
        "steps": 3, "tasks_per_step": 2, "rollouts_per_task": 2, "minibatches": 1, "checkpoint_every": 2,
        "learning_rate": 0.01, "lora": {"rank": 2, "alpha": 4},
    },
}  # fmt: skip


def trained(folder: Path, name: str, stop_after: int = 0) -> Curve:
    overlay = {**SMALL, "policy": {**SMALL["policy"], "model": str(folder / "source")}}
    return train_small(folder, name, overlay, stop_after=stop_after)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("domain-tokens")
    source = write_folder(path / "source", llama(tie_word_embeddings=True))
    overlay = {**SMALL, "policy": {**SMALL["policy"], "model": str(source)}}
    prepare(path, yaml.safe_dump(overlay), demonstrations=8)
    return path


@pytest.fixture(scope="module")
def curve(folder: Path) -> Curve:
    return trained(folder, "whole")


def test_the_engine_samples_from_what_the_learner_trains(curve: Curve) -> None:
    assert [row["step"] for row in curve] == [1, 2, 3]
    assert all(row["mismatch/largest"] < 1e-4 for row in curve)
    assert curve[-1]["reference_kl"] > 0


def test_the_new_rows_are_trained_and_no_other_row_of_the_embeddings(folder: Path, curve: Curve) -> None:
    start, whole = load_policy(folder / "start"), load_policy(folder / "whole")
    new = added_tokens(start, Experiment(parameters(folder, smoke=True)).domain_words)
    assert len(new) > 5 and new[-1] == len(start.tokenizer) - 1
    before, after = (policy.model.get_input_embeddings().weight for policy in (start, whole))
    changed = (before != after).any(1).nonzero().flatten().tolist()
    assert changed == new, "AdamW moves every row that has had a gradient, and all logits give one"
    assert whole.model.get_output_embeddings().weight is after, "still tied"


def test_peft_reads_the_rows_beside_the_adapter(folder: Path, curve: Curve) -> None:
    start, whole = load_policy(folder / "start").model, load_policy(folder / "whole").model
    loaded = peft.PeftModel.from_pretrained(start, folder / "whole" / "adapter")
    tokens = torch.arange(len(whole.get_input_embeddings().weight) - 12, len(start.lm_head.weight))[None]
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens).logits, whole(tokens).logits, atol=1e-5, rtol=1e-5)


def test_interrupted_it_goes_on_from_its_checkpoint_to_the_same_bytes(folder: Path, curve: Curve) -> None:
    with pytest.raises(StoppedError):
        trained(folder, "interrupted", stop_after=3)
    (checkpoint,) = (folder / "checkpoints-interrupted").rglob("mp_rank_00_model_states.pt")
    names = torch.load(checkpoint, weights_only=False)["module"]
    assert sum("trained_rows" in name for name in names) == 1
    assert all("lora_" in name or "trained_rows" in name for name in names)
    assert [row["step"] for row in trained(folder, "interrupted")] == [1, 2, 3]
    for file in ("model.safetensors", "adapter/adapter_model.safetensors"):
        first, second = (load_file(folder / name / file) for name in ("whole", "interrupted"))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)
