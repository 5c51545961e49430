"""Every algorithm of the registry, with every selection and every shaping, trains a small policy end to end.

A new algorithm is tested here through its line in the registry and its overlay ``params/<name>.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

from skillpress.core.registry import ALGORITHMS, SHAPINGS
from skillpress.experiment.params import merge, read_yaml
from skillpress.experiment.training import train
from skillpress.training.loop.mismatch import MismatchError
from tests.support.experiment.small_training import prepared
from tests.support.programs.training_program import job

ROOT = Path(__file__).parents[3]
SMALL = {
    "training": {"steps": 2, "learning_rate": 0.01},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"epochs": 4},
}
OTHERS = [name for name in ALGORITHMS if name != "grpo"]
"""Algorithms with an overlay; GRPO is in the default experiment."""
BY_TWO = {"reinforce_pp": "slow"}
"""Algorithms whose test with two ranks is slow: the baseline is a mean over the episodes of both."""
STEPWISE = {"reward": {"invalid_credit": "step", "invalid_counts": "format"}}


folder = prepared(SMALL)


def nothing(step: int, metrics: dict[str, float]) -> None:
    """A report that does nothing."""


def trained(
    folder: Path, name: str, *overlays: dict, report: Callable[[int, dict[str, float]], None] = nothing
) -> list[dict[str, float]]:
    """Train with these overlays to the model folder ``name``; returns the curve."""
    merged: dict = SMALL
    for overlay in overlays:
        merged = merge(merged, overlay)
    (folder / "overlay.yaml").write_text(yaml.safe_dump(merged))
    return train(job(folder, name), report)


def moved(folder: Path, name: str, from_name: str = "start") -> float:
    """The largest change of any weight."""
    weights, start = (load_file(folder / each / "model.safetensors") for each in (name, from_name))
    return max(float((weights[key] - start[key]).abs().max()) for key in start)


def interrupted(step: int, metrics: dict[str, float]) -> None:
    """A report that ends the training before the checkpoint of its second step."""
    if step == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", OTHERS)
def test_an_algorithms_overlay_trains_and_goes_on_bit_for_bit(folder: Path, name: str) -> None:
    overlay = read_yaml(ROOT / "params" / f"{name}.yaml")
    curve = trained(folder, name, overlay)
    assert [row["step"] for row in curve] == [1, 2]
    assert all(math.isfinite(value) for row in curve for value in row.values())
    assert sum(row["success"] for row in curve) > 0, "without a success nothing is learned"
    assert moved(folder, name) > 1e-3
    with pytest.raises(KeyboardInterrupt):
        trained(folder, f"{name}-again", overlay, report=interrupted)
    continued: list[int] = []
    trained(folder, f"{name}-again", overlay, report=lambda step, _: continued.append(step))
    assert continued == [2], "the first step was not done again"
    assert moved(folder, name, f"{name}-again") == 0


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=getattr(pytest.mark, BY_TWO.get(name, "thorough"))) for name in OTHERS],
)
def test_two_ranks_make_the_update_of_one(folder: Path, name: str) -> None:
    """They learn from the same episodes, in one update: only the order of summation differs."""
    same = {"algorithm": {"select": {"name": "none"}}, "training": {"minibatches": 1, "steps": 1}}
    overlay = read_yaml(ROOT / "params" / f"{name}.yaml")
    (one,), (two,) = (
        trained(folder, f"{name}-of-{ranks}", overlay, same, {"processes": ranks}) for ranks in (1, 2)
    )
    assert one["success"] == two["success"] and one["gradient_norm"] > 0
    for column in ("gradient_norm", "loss", "return"):
        assert two[column] == pytest.approx(one[column], rel=1e-3, abs=1e-5), column


@pytest.mark.thorough
@pytest.mark.parametrize("name", ALGORITHMS)
def test_any_algorithm_goes_with_any_shaping(folder: Path, name: str) -> None:
    overlay = {} if name == "grpo" else read_yaml(ROOT / "params" / f"{name}.yaml")
    for shaping in SHAPINGS:
        curve = trained(folder, f"{name}-{shaping}", overlay, {"reward": {"shaping": shaping}})
        assert all(math.isfinite(value) for row in curve for value in row.values())
        assert moved(folder, f"{name}-{shaping}") > 0


@pytest.mark.thorough
@pytest.mark.parametrize("name", ALGORITHMS)
def test_any_algorithm_learns_otherwise_where_steps_pay(folder: Path, name: str) -> None:
    overlay = {} if name == "grpo" else read_yaml(ROOT / "params" / f"{name}.yaml")
    for credit in ("trajectory", "step"):
        curve = trained(folder, f"{name}-pays-{credit}", overlay, {"reward": {"shaping_credit": credit}})
        assert all(math.isfinite(value) for row in curve for value in row.values())
    assert moved(folder, f"{name}-pays-step", f"{name}-pays-trajectory") > 0


@pytest.mark.parametrize("name", ["rloo", "reinforce_pp"])
@pytest.mark.parametrize("selection", ["varied_groups", "dynamic_sampling"])
def test_any_algorithm_goes_with_any_selection(folder: Path, name: str, selection: str) -> None:
    select = read_yaml(ROOT / "params" / f"{selection}.yaml")["algorithm"]
    curve = trained(folder, f"{name}-{selection}", read_yaml(ROOT / "params" / f"{name}.yaml"),
                    {"algorithm": select})  # fmt: skip
    assert all(row["kept"] < 1 for row in curve), "wins and failures are all there is, so some are left out"
    if selection == "varied_groups":
        played = [row["kept"] for row in curve]
        assert all(share > 0 for share in played), "of some tasks both a win and a failure were seen"


@pytest.mark.parametrize("level", ["turn", "trajectory"])
def test_ratios_over_turns_and_trajectories_train_and_do_so_again_bit_for_bit(
    folder: Path, level: str
) -> None:
    """The training uses importance weights, which work with ratios at every level."""
    overlay = {"algorithm": {"ratio": level, "importance": "token"}}
    curve = trained(folder, level, overlay)
    assert all(math.isfinite(value) for row in curve for value in row.values())
    assert moved(folder, level) > 1e-3
    trained(folder, f"{level}-again", overlay)
    assert moved(folder, level, f"{level}-again") == 0


def test_strictly_on_policy_all_levels_of_the_ratio_take_the_same_first_step(folder: Path) -> None:
    """There is one update per step, and ratios against the learner's own probabilities are exactly 1."""
    one = {"training": {"minibatches": 1}}
    curves = {
        level: trained(folder, f"on-{level}", one, {"algorithm": {"ratio": level, "importance": "token"}})
        for level in ("token", "turn", "trajectory")
    }
    for curve in curves.values():
        assert curve[0]["approximate_kl"] == curve[0]["clip_fraction"] == 0
        assert curve[0]["gradient_norm"] == pytest.approx(curves["token"][0]["gradient_norm"], rel=1e-5)
    assert moved(folder, "on-token") > 1e-3


def ratio(name: str) -> dict:
    """The overlay of an algorithm, or of GRPO with ratios over trajectories."""
    whole = {"algorithm": {"ratio": "trajectory"}}
    return whole if name == "trajectory" else read_yaml(ROOT / "params" / f"{name}.yaml")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["trajectory"])
def test_two_ranks_take_the_first_step_that_one_takes(folder: Path, name: str) -> None:
    one, two = (trained(folder, f"{name}-{n}", ratio(name), {"processes": n}) for n in (1, 2))
    for metric in ("loss", "gradient_norm", "clip_fraction", "approximate_kl", "tokens_trained"):
        assert two[0][metric] == pytest.approx(one[0][metric], rel=1e-3, abs=1e-6), metric


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_importance_weights_change_nothing_but_rounding_where_engine_and_learner_agree(
    folder: Path, level: str
) -> None:
    plain = trained(folder, "unweighted")
    weighted = trained(folder, level, {"algorithm": {"importance": level}})
    assert not any("importance/truncated" in row for row in plain)
    for name in ("success", "gradient_norm", "entropy"):
        assert weighted[0][name] == pytest.approx(plain[0][name], rel=0.01)
    for row in weighted:
        assert row["importance/truncated"] == 0
        assert row["importance/token_ratio_p01"] == pytest.approx(1, abs=1e-4)
        assert row["importance/sequence_ratio_p99"] == pytest.approx(1, abs=1e-4)
        assert row["mismatch/largest"] < 1e-4


def test_an_engine_in_float32_beside_a_learner_in_bfloat16_differs_and_is_weighted(folder: Path) -> None:
    halves = {"training": {"deepspeed": "zero1_bf16", "mismatch_limit": 0.2}}
    curve = trained(folder, "halves", halves, {"algorithm": {"importance": "sequence"}})
    for row in curve:
        assert 1e-4 < row["mismatch/mean"] < 0.2, "far above the rounding of float32"
        assert row["importance/token_ratio_p01"] < row["importance/token_ratio_p99"]


def test_a_training_whose_engine_differs_by_more_than_the_limit_stops(folder: Path) -> None:
    """The learner computes in half precision, because in float32 engine and learner may agree to the last
    bit."""
    narrow = {"training": {"deepspeed": "zero1_bf16", "mismatch_limit": 1e-6}}
    with pytest.raises(MismatchError, match=r"training\.mismatch_limit is 1e-06: in training step \d "):
        trained(folder, "stopped", narrow)


def test_a_penalty_of_the_step_alone_trains_another_policy(folder: Path) -> None:
    """Only the mechanism differs: verl-agent's and the default one."""
    plain, stepwise = trained(folder, "plain"), trained(folder, "stepwise", STEPWISE)
    assert plain[0]["success"] == stepwise[0]["success"], "both played the same first batch"
    assert moved(folder, "plain", "stepwise") > 0
