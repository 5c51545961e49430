"""``skillpress.train``: the stages' results, and nothing left in the lab or in the process."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path

import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from skillpress import Trained, UserError, scan_rollouts, train
from skillpress.pipeline.files import BASE_POLICY, EVALUATION_ROLLOUTS, POLICY, RESULTS
from tests.support.clone import Clone

pytestmark = pytest.mark.heavy
SMOKE = "params/smoke.yaml"
SMALLER = {
    "tasks": {"train": 64, "validation": 0, "test": 8},
    "imitation": {"demonstrations": 500},
    "training": {"steps": 2},
    "evaluation": {"runs": 1},
}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train("countdown", SMOKE, **SMALLER)


@pytest.mark.slow
def test_it_gives_the_weights_and_the_episodes_of_the_stages(reproduced: Clone) -> None:
    steps: list[int] = []
    ours = train("countdown", SMOKE, on_step=lambda step, metrics: steps.append(step))
    theirs = reproduced.folder
    assert same(weights(ours.folder / "start"), weights(theirs / BASE_POLICY))
    assert same(weights(ours.folder / "policy"), weights(theirs / POLICY))
    curve = pl.read_csv(theirs / RESULTS / "training.csv", infer_schema_length=None)
    timeless = ["step", "success", "return", "entropy", "loss"]
    assert steps == curve["step"].to_list() and ours.steps[timeless].equals(curve[timeless])
    recorded = json.loads((theirs / RESULTS / "evaluation.json").read_text())["policies"]
    played = scan_rollouts(theirs / EVALUATION_ROLLOUTS)
    for player in ("explorer", "start", "trained"):
        assert ours.evaluate(player).to_json() == recorded[player]
        assert ours.rollouts(player).collect().equals(played.filter(policy=player).collect())


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(trained: Trained) -> None:
    again, other = train("countdown", SMOKE, **SMALLER), train("countdown", SMOKE, seed=1, **SMALLER)
    assert same(weights(trained.folder / "policy"), weights(again.folder / "policy"))
    assert not same(weights(trained.folder / "policy"), weights(other.folder / "policy"))
    assert trained.steps["step"].to_list() == [1, 2]


def test_the_policy_outlives_its_files_which_end_with_what_was_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, threads = dict(os.environ), torch.get_num_threads()
    found = train("countdown", SMOKE, **SMALLER)
    summary, policy, folder = found.evaluate("explorer"), found.policy, found.folder
    assert summary.tasks == 8 and policy.parameters > 0
    assert [*tmp_path.iterdir()] == [] and dict(os.environ) == before and torch.get_num_threads() == threads
    assert folder.is_dir()
    del found
    gc.collect()
    assert not folder.exists()


def test_a_whole_section_is_an_environment_and_the_default_is_one_process() -> None:
    section = {
        "name": "countdown", "max_steps": 4, "min_numbers": 3, "max_numbers": 3, "min_target": 10,
        "max_target": 100, "min_solutions": 1,
    }  # fmt: skip
    found = train(section, imitation={"demonstrations": 0}, training={"steps": 0}, tasks=SMALLER["tasks"])
    assert found.params.environment.max_steps == 4 and found.params.processes == 1
    assert same(weights(found.folder / "start"), weights(found.folder / "policy"))


@pytest.mark.parametrize(
    ("arguments", "sections", "said"),
    [
        (["countdwn"], {}, "did you mean 'countdown'"),
        (
            ["countdown"],
            {"training": {"stepz": 3}},
            r"unknown key.*\(the arguments of train\)",
        ),
        (["countdown", "no.yaml"], {}, "no.yaml: cannot be read"),
        (["alfworld", SMOKE], {}, "environment.max_steps: missing"),
    ],
)
def test_a_mistake_is_named_before_anything_is_made(arguments: list, sections: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        train(*arguments, **sections)
