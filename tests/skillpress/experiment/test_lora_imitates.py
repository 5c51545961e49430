"""Low-rank changes imitate, and training goes on with them or from the weights that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import yaml
from safetensors.torch import load_file

from skillpress.core.errors import ParamsError
from skillpress.core.resume import ResumeStore, SaveTimer
from skillpress.core.task_files import write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.experiment import imitation_job
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.imitation import ImitationJob, ImitationResult, imitate_demonstrations
from skillpress.experiment.params import Params, load_params, merge
from skillpress.models.policy import load_policy
from skillpress.models.policy.lora import SavedAdapter
from skillpress.training.imitation import trainer
from tests.support.experiment.small_training import Curve, train_small

LORA = {"rank": 4, "alpha": 8}
SMALL: dict[str, Any] = {
    "training": {"steps": 2, "learning_rate": 0.01, "checkpoint_every": 2, "lora": LORA},
    "algorithm": {"kl_coefficient": 0.05},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"epochs": 8, "demonstrations": 300, "batch_size": 32},
    "tasks": {"train": 64, "validation": 8, "test": 8},
}
ROOT = Path(__file__).parents[3]
TOKENS = torch.arange(2, 12)[None]


def params_of(folder: Path, *overlays: dict[str, Any]) -> Params:
    values = SMALL
    for overlay in overlays:
        values = merge(values, overlay)
    (folder / "overlay.yaml").write_text(yaml.safe_dump(values))
    return load_params(ROOT / "params.yaml", ROOT / "params" / "smoke.yaml", folder / "overlay.yaml")


def then(what: str, **section: Any) -> dict[str, Any]:
    return {"imitation": {"lora": {**LORA, "then": what}, **section}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    params = params_of(tmp_path)
    made = list(params.environment.checked_tasks(SplitSizes(64, 8, 1), 0))
    for split in ("train", "validation"):
        write_tasks(tmp_path / f"{split}.parquet", [task for task in made if task.split == split])
    return tmp_path


def imitated(folder: Path, params: Params, name: str = "start") -> ImitationResult:
    store = ResumeStore(folder, f"{name}-store")
    return imitate_demonstrations(
        ImitationJob(params, folder / "train.parquet", folder / name, store), lambda rank, progress: None
    )


NF4: dict[str, Any] = {"policy": {"quantised": "nf4"}}


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        (merge(then("continue"), {"training": {"lora": None}}), "training.lora is null: must be {rank: 4"),
        (then("continue", lora={"rank": 2, "alpha": 8, "then": "continue"}), "must be {rank: 2, alpha: 8}"),
        (
            merge(NF4, {"training": {"lora": None}}),
            "policy.quantised is nf4, whose weights cannot be trained",
        ),
        (NF4, "imitation.lora is null, must be {rank, alpha, then: continue}"),
        (merge(NF4, then("merge")), "imitation.lora is one whose then is merge, must be"),
        (
            merge(merge(NF4, then("continue")), {"training": {"deepspeed": "zero3_bf16"}}),
            "training.deepspeed is zero3_bf16, must be one of stage 0 to 2",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_by_its_keys(
    tmp_path: Path, overlay: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParamsError) as caught:
        params_of(tmp_path, overlay)
    assert message in str(caught.value)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(TOKENS).logits
    return found


def test_imitation_changes_no_weight_but_through_the_adapter_and_leaves_a_whole_model(folder: Path) -> None:
    params = params_of(folder, then("continue"))
    result = imitated(folder, params)
    assert result.losses[-1] < result.losses[0] - 0.3
    policy = Experiment(params).starting_policy()
    assert result.parameters == policy.parameters
    whole = load_policy(folder / "start")
    before, after = policy.model.state_dict(), whole.model.state_dict()
    still = {name for name in before if torch.equal(before[name], after[name])}
    assert still == {name for name in before if "_proj" not in name}, "embeddings, norms and head"
    unmerged = peft.PeftModel.from_pretrained(policy.model, folder / "start" / "adapter")
    torch.testing.assert_close(logits(unmerged), logits(whole.model), atol=1e-5, rtol=1e-5)


def test_merged_weights_are_those_that_the_adapter_gives_and_no_adapter_is_left(folder: Path) -> None:
    for name in ("merge", "continue"):
        imitated(folder, params_of(folder, then(name)), name)
    merged, kept = (load_file(folder / name / "model.safetensors") for name in ("merge", "continue"))
    assert all(torch.equal(merged[name], kept[name]) for name in kept)
    assert SavedAdapter.beside(folder / "merge") is None
    assert SavedAdapter.beside(folder / "continue") is not None


def trained(folder: Path, name: str, overlay: dict[str, Any]) -> Curve:
    return train_small(folder, name, SMALL, overlay)


@pytest.mark.parametrize("configuration", ["zero1_fp32", "zero3_fp32"])
def test_training_goes_on_with_the_adapter_from_the_imitating_policy(
    folder: Path, configuration: str
) -> None:
    overlay = merge(then("continue"), {"training": {"deepspeed": configuration}})
    imitated(folder, params_of(folder, overlay))
    first, second = trained(folder, "policy", overlay)
    assert first["mismatch/largest"] < 1e-4 and second["mismatch/largest"] < 1e-4
    assert first["reference_kl"] < 0.5 * second["reference_kl"], "it starts at the start policy"
    start, adapter = SavedAdapter.beside(folder / "start"), SavedAdapter.beside(folder / "policy")
    assert start is not None and adapter is not None
    moved = max(float((adapter.tensors[name] - start.tensors[name]).abs().max()) for name in start.tensors)
    assert start.tensors.keys() == adapter.tensors.keys() and 0 < moved < 0.1
    base = Experiment(params_of(folder, overlay)).starting_policy().model
    loaded = peft.PeftModel.from_pretrained(base, folder / "policy" / "adapter")
    whole = load_policy(folder / "policy").model
    torch.testing.assert_close(logits(loaded), logits(whole), atol=1e-5, rtol=1e-5)


def test_the_first_rollouts_are_the_same_whether_the_adapter_is_merged_or_goes_on(folder: Path) -> None:
    curves = []
    for name in ("merge", "continue"):
        imitated(folder, params_of(folder, then(name)))
        curves.append(trained(folder, name, then(name))[0])
    assert curves[0]["success"] == curves[1]["success"]
    assert curves[0]["loss"] == pytest.approx(curves[1]["loss"], abs=1e-3)


def test_stopped_imitation_goes_on_from_its_checkpoint_to_the_same_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = params_of(folder, then("continue"))
    imitated(folder, params, "whole")
    real = trainer.imitate

    def stopped(*arguments: Any, **named: Any) -> list[float]:
        def stop(done: int, total: int, loss: float) -> None:
            if done == total // 2:
                raise KeyboardInterrupt

        return real(*arguments, **{**named, "on_update": stop, "timer": SaveTimer(0.0)})

    monkeypatch.setattr(imitation_job, "imitate", stopped)
    with pytest.raises(KeyboardInterrupt):
        imitated(folder, params, "stopped")
    (checkpoint,) = folder.rglob("imitation.pt")
    assert checkpoint.stat().st_size < (folder / "whole" / "model.safetensors").stat().st_size
    monkeypatch.setattr(imitation_job, "imitate", real)
    imitated(folder, params, "stopped")
    for file in ("model.safetensors", "adapter/adapter_model.safetensors"):
        assert (folder / "whole" / file).read_bytes() == (folder / "stopped" / file).read_bytes()


def test_two_processes_imitate_as_one_does_up_to_rounding(folder: Path) -> None:
    one, two = (
        imitated(folder, params_of(folder, then("continue", epochs=1), {"processes": number}), str(number))
        for number in (1, 2)
    )
    assert two.losses == pytest.approx(one.losses, rel=1e-4)
    assert (folder / "2" / "adapter").is_dir()


def test_weights_of_4_bits_stay_while_an_adapter_imitates_and_is_trained_on(folder: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="pip install --no-deps bitsandbytes")
    small = {"policy": {"quantised": "nf4", "width": 64, "heads": 2}}
    overlay = merge(then("continue"), small)
    result = imitated(folder, params_of(folder, overlay))
    assert result.losses[-1] < result.losses[0] - 0.3
    first, second = trained(folder, "policy", overlay)
    assert max(row["mismatch/largest"] for row in (first, second)) < 1e-4, "engines play what is trained"
    base = Experiment(params_of(folder, overlay)).starting_policy().model
    loaded = peft.PeftModel.from_pretrained(base, folder / "policy" / "adapter")
    whole = load_policy(folder / "policy").model
    torch.testing.assert_close(logits(loaded), logits(whole), atol=1e-5, rtol=1e-5)
