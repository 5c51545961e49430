"""The params files that ship are valid, and say where their values are from."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.experiment.params import load_params, read_yaml

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / "params.yaml"
PAPER = sorted((ROOT / "params").glob("paper_*.yaml"))
OVERLAYS = sorted((ROOT / "params").glob("*.yaml"))


def leaves(values: dict[str, object]) -> int:
    return sum(leaves(value) if isinstance(value, dict) else 1 for value in values.values())


def test_the_default_experiment_has_fewer_than_90_keys() -> None:
    assert leaves(read_yaml(DEFAULT)) < 90


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_every_overlay_that_ships_is_valid_and_changes_something(overlay: Path) -> None:
    changed = load_params(DEFAULT, overlay) != load_params(DEFAULT)
    as_default = ("segcost", "local")  # the paper's method; local is for overlays that ask for vLLM
    assert changed or overlay.stem in as_default


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_lambda_is_in_the_usual_proportion_to_the_success_whatever_that_is_worth(overlay: Path) -> None:
    """An overlay that changes the scale of rewards changes the penalty with it."""
    reward = load_params(DEFAULT, overlay).reward
    assert reward.shaping_weight == reward.success


@pytest.mark.parametrize("overlay", PAPER, ids=lambda path: path.stem)
def test_every_value_of_a_papers_overlay_names_its_source(overlay: Path) -> None:
    lines = [line for line in overlay.read_text().splitlines() if line.strip() and not line.startswith("#")]
    values = [line for line in lines if not line.split("#")[0].rstrip().endswith(":")]
    assert [line for line in values if "#" not in line and "  name: " not in line] == []
    marks = ("# stated: ", "# inherited: ", "# released: ", "# ours")
    assert [line for line in values if "#" in line and not any(mark in line for mark in marks)] == []


@pytest.mark.parametrize("environment", ["alfworld", "textworld_cooking"])
def test_the_papers_benchmarks_are_trained_alike(environment: str) -> None:
    params = load_params(DEFAULT, ROOT / "params" / f"paper_{environment}.yaml")
    countdown = load_params(DEFAULT, ROOT / "params" / "paper_countdown.yaml")
    assert (params.training, params.reward) == (countdown.training, countdown.reward)
    assert params.algorithm == countdown.algorithm
    of, its = params.engine.model_dump(), countdown.engine.model_dump()
    assert of | {"cache_gib": 0} == its | {"cache_gib": 0}, "the cache decides no result"


@pytest.mark.parametrize("environment", ["alfworld", "textworld_cooking", "countdown"])
def test_the_papers_benchmarks_sample_with_vllm_unless_local_is_laid_over_them(environment: str) -> None:
    overlay = ROOT / "params" / f"paper_{environment}.yaml"
    assert load_params(DEFAULT, overlay).engine.name == "vllm"
    assert load_params(DEFAULT, overlay, ROOT / "params" / "local.yaml").engine.name == "local"


@pytest.mark.parametrize("model", ["qwen3_4b", "qwen2_5_32b"])
def test_l0s_other_models_change_the_model_and_its_steps_and_name_their_sources(model: str) -> None:
    overlay = ROOT / "params" / "l0_models" / f"{model}.yaml"
    base = ROOT / "params" / "paper_notebook_qa.yaml"
    before, after = load_params(DEFAULT, base), load_params(DEFAULT, base, overlay)
    assert (after.training, after.reward, after.sampling) == (before.training, before.reward, before.sampling)
    assert after.environment.max_steps > before.environment.max_steps
    values = [line for line in overlay.read_text().splitlines() if ": " in line and not line.startswith("#")]
    assert all("# stated: " in line or "# released: " in line for line in values)
