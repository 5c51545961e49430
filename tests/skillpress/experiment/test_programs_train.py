"""Programs whose calls are trees train a small policy end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from skillpress.core.chains import Pairs, in_chains
from skillpress.experiment.params import merge, read_yaml
from skillpress.models.policy import save_policy
from skillpress.training.loop import model_pass
from tests.support.experiment.small_training import train_small
from tests.support.models.tiny import tiny_policy
from tests.support.programs.training_program import prepare
from tests.support.rollouts import asking

ROOT = Path(__file__).parents[3]
TASKS = 81
OWN = {"grpo": "success", "gigpo": "step_groups/company", "ppo": "value/loss"}
"""A metric of each algorithm that is above 0: GiGPO's observations recur, and PPO's values learn."""


def small(folder: Path) -> dict[str, Any]:
    """Two sub-agents that take turns, played by a policy whose weights are random."""
    return {
        "environment": {
            "name": "program",
            "run": f"{asking.HERE}:take_turns",
            "verify": f"{asking.HERE}:evenly",
            "tasks": str(folder / "tasks.jsonl"),
            "calls": "words",
            "rules": str(folder / "rules.yaml"),
            "max_calls": 8,
            "seconds": 60,
            "isolation": "none",
        },
        "policy": {"model": str(folder / "model"), "rendering": "compact"},
        "imitation": {"demonstrations": 0},
        "processes": 1,
        "training": {"steps": 1, "minibatches": 1, "learning_rate": 0.01},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs")
    lines = [json.dumps({"id": f"from-{start}", "start": start % 40}) for start in range(TASKS)]
    (path / "tasks.jsonl").write_text("\n".join(lines))
    rules = [[word, word] for word in ("up", "down", "stop")]
    (path / "rules.yaml").write_text(yaml.safe_dump({"rules": rules}))
    save_policy(tiny_policy(), path / "model")
    prepare(path, yaml.safe_dump(small(path)), demonstrations=0)
    return path


def trained(folder: Path, name: str, algorithm: str) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """The curve's only row, and the weights."""
    overlay = {} if algorithm == "grpo" else read_yaml(ROOT / "params" / f"{algorithm}.yaml")
    (row,) = train_small(folder, name, merge(small(folder), overlay))
    return row, load_file(folder / name / "model.safetensors")


@pytest.mark.parametrize("algorithm", OWN)
def test_a_step_teaches_the_same_whether_calls_are_scored_as_trees_or_apart(
    folder: Path, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each advantage, value and target stays with its call. Where a gradient is only rounding, the optimizer
    makes a step of any sign of it; there are few such weights."""
    sequences = []

    def ordered(pairs: Pairs, episode: np.ndarray) -> np.ndarray:
        order = in_chains(pairs, episode)
        sequences.append((len(pairs.select(order).chains), len(pairs.chains)))
        return order if len(sequences) == 1 else np.arange(len(pairs))

    monkeypatch.setattr(model_pass, "in_chains", ordered)
    trees, found = trained(folder, f"{algorithm}-trees", algorithm)
    apart, expected = trained(folder, f"{algorithm}-apart", algorithm)
    assert 0 < trees["success"] < 1 and trees[OWN[algorithm]] > 0
    assert sequences[0] == sequences[1]
    assert sequences[0][0] < sequences[0][1] / 2, "neighbours are calls of different agents"
    for name in ("loss", "gradient_norm", "entropy"):
        assert trees[name] == pytest.approx(apart[name], rel=1e-4, abs=1e-6)
    start = load_file(folder / "start" / "model.safetensors")
    moved = torch.cat([(found[name] - start[name]).flatten() for name in start]).abs()
    differ = torch.cat([(found[name] - expected[name]).flatten() for name in start]).abs()
    assert float(moved.max()) > 1e-3 and float((differ > 1e-4).float().mean()) < 1e-3
