"""Layers of parameters: how overlays and assignments change what is below, and where a mistake is."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core import moved
from skillpress.core.errors import ParamsError
from skillpress.core.moved import with_present_keys
from skillpress.experiment.layers import assigned_layers, file_layer
from skillpress.experiment.params import check_params, load_params, merge, merged, read_yaml

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / "params.yaml"


def test_a_former_key_is_the_same_parameter_in_files_and_assignments_and_one_note_tells_the_present_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved.tell.cache_clear()
    (tmp_path / "overlay.yaml").write_text("reward: {efficiency: 3.0}\n")
    params = load_params(DEFAULT, tmp_path / "overlay.yaml")
    said = "reward.efficiency: is now called reward.shaping_weight; rename it"
    assert capsys.readouterr().err.startswith(said)
    assert params == check_params(merge(read_yaml(DEFAULT), {"reward": {"shaping_weight": 3.0}}), "test")
    layers = [file_layer(DEFAULT), *assigned_layers(["reward.efficiency=3.0"])]
    assert capsys.readouterr().err == ""  # it was said
    assert check_params(merged(layers), "test", layers) == params
    with pytest.raises(ParamsError, match=r"--set reward\.shaping_weight=1: --set reward\.efficiency=1 sets"):
        assigned_layers(["reward.efficiency=1", "reward.shaping_weight=1"])
    (tmp_path / "overlay.yaml").write_text("reward: {efficiency: 3.0, shaping_weight: 3.0}\n")
    with pytest.raises(ParamsError, match=r"overlay\.yaml: .* are the same parameter; remove reward"):
        load_params(DEFAULT, tmp_path / "overlay.yaml")


def test_what_isolates_is_read_by_its_former_key_and_another_environments_walls_are_its_own() -> None:
    sections = [{"walls": "gvisor"}, {"isolation": "gvisor"}, {"walls": 2}]
    found = [with_present_keys({"environment": section}, "test")["environment"] for section in sections]
    assert found == [{"isolation": "gvisor"}, {"isolation": "gvisor"}, {"walls": 2}]


def test_a_key_that_is_gone_is_refused_with_what_replaces_it_unless_it_was_unused() -> None:
    def section(pass_rates: str) -> dict[str, dict[str, object]]:
        return {"environment": {"name": "notebook_qa", "max_steps": 4, "pass_rates": pass_rates}}

    assert with_present_keys(section(""), "test") == {"environment": {"name": "notebook_qa", "max_steps": 4}}
    with pytest.raises(
        ParamsError,
        match=r"test: environment\.pass_rates: is gone: .* set tasks\.keep .* rollouts\.tasks: all",
    ):
        with_present_keys(section("rates.parquet"), "test", note=True)
    assert with_present_keys(section("rates.parquet"), "a stored run") == section("rates.parquet")


def test_overlays_merge_key_by_key_and_the_last_wins() -> None:
    base = {"a": {"x": 1, "y": 2}, "b": 3}
    assert merge(base, {"a": {"y": 5}}) == {"a": {"x": 1, "y": 5}, "b": 3}
    assert base == {"a": {"x": 1, "y": 2}, "b": 3}


def test_an_overlay_of_another_environment_keeps_none_of_the_keys_below_it() -> None:
    base = {"environment": {"name": "countdown", "max_steps": 30, "max_target": 999}}
    other = {"environment": {"name": "other", "max_steps": 50}}
    assert merge(base, other) == other
    assert merge(merge(base, other), {"environment": {"max_steps": 9}}) == {
        "environment": {"name": "other", "max_steps": 9}
    }


@pytest.mark.parametrize("overlay", [{"max_steps": 9}, {"name": "countdown", "max_steps": 9}])
def test_an_overlay_of_the_same_environment_changes_single_keys(overlay: dict[str, object]) -> None:
    base = {"environment": {"name": "countdown", "max_steps": 30, "max_target": 999}}
    expected = {"environment": {"name": "countdown", "max_steps": 9, "max_target": 999}}
    assert merge(base, {"environment": overlay}) == expected


def test_an_overlay_of_another_algorithm_or_selection_replaces_its_section_whole() -> None:
    base = {"algorithm": {"name": "grpo", "scale": "std", "select": {"name": "varied_groups", "refills": 3}}}
    rloo = {"algorithm": {"name": "rloo", "select": {"name": "none"}}}
    assert merge(base, rloo) == rloo
    drawn = {"algorithm": {"select": {"name": "dynamic_sampling", "discard": 0.5, "refills": 2}}}
    assert merge(base, drawn)["algorithm"] == {"name": "grpo", "scale": "std", **drawn["algorithm"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training:\n  steps: 4\n  stepz: 5\n", r"training\.stepz: unknown key.*\(mine\.yaml, line 3\)"),
        ("\nsteps: 4\n", r"steps: unknown key; did you mean training\.steps\?.*\(mine\.yaml, line 2\)"),
        ("training: {clip_low: 1}\n", r"did you mean algorithm\.clip_low\?.*\(mine\.yaml, line 1\)"),
        ("training.steps: 4\n", r"write steps below training, .* \(mine\.yaml, line 1\)"),
        ("training: {seed: 3}\n", r"Or seed\? Write it at the top level"),
        ("training: {zzz: 3}\n", r"unknown key; remove it or correct its spelling \(mine\.yaml, line 1\)"),
        ("temperature: 1\n", r"did you mean sampling\.temperature or evaluation\.temperature\?"),
        ("\ntraining:\n  betas:\n  - 0.9\n  - 2\n", r"training\.betas\.1: is 2.*\(mine\.yaml, line 5\)"),
        ("seed: 1\n\nengine:\n  name: server\n", r"engine\.urls: missing.*\(mine\.yaml, line 3\)"),
        ("policy:\n  width: .inf\n", r"policy\.width: .*\(mine\.yaml, line 2\)"),
        (
            "training:\n  lag: 9\n  checkpoint_every: 5\n",
            r"\(training\.lag: mine\.yaml, line 2; training\.checkpoint_every: mine\.yaml, line 3\)",
        ),
    ],
)
def test_a_mistake_names_the_file_and_the_line_that_hold_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text("reward: {shaping: none}\n")
    for overlays in (("mine.yaml", "other.yaml"), ("other.yaml", "mine.yaml")):
        with pytest.raises(ParamsError, match=said):
            load_params(DEFAULT, *overlays)


def test_of_several_files_that_give_a_value_the_last_is_named(tmp_path: Path) -> None:
    first, last = tmp_path / "first.yaml", tmp_path / "last.yaml"
    first.write_text("training: {steps: 3}\n")
    last.write_text("training:\n\n  steps: many\n")
    with pytest.raises(ParamsError, match=r"training\.steps: is 'many'.*\(.*last\.yaml, line 3\)"):
        load_params(DEFAULT, first, last)


def test_an_assignment_is_yaml_over_all_files_and_is_named_in_its_mistake() -> None:
    layers = [file_layer(DEFAULT), *assigned_layers(["training.learning_rate=1e-4", "skills.library=null"])]
    assert check_params(merged(layers), "test", layers).training.learning_rate == 0.0001
    wrong = [file_layer(DEFAULT), *assigned_layers(["training.steps=many"])]
    with pytest.raises(ParamsError, match=r"steps: is 'many'.*\(--set training\.steps=many\)"):
        check_params(merged(wrong), "test", wrong)
    with pytest.raises(ParamsError, match=r"--set seed=2: --set seed=1 sets seed too"):
        assigned_layers(["seed=1", "seed=2"])
    for text in ("training.steps", "=3", "training..steps=3", "training. steps=3"):
        with pytest.raises(ParamsError, match=r"must be key=value"):
            assigned_layers([text])
