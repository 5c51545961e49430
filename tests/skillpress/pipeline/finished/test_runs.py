"""``skillpress runs``: what ran and what it came to, from folders and from records of studies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml

from skillpress.cli.command import main as command
from skillpress.core.intervals import wilson
from skillpress.core.rollout_files import read_rollouts
from skillpress.experiment.params import read_yaml
from skillpress.pipeline import exit_codes
from skillpress.pipeline.files import EVALUATION_ROLLOUTS
from skillpress.pipeline.finished import runs as module
from skillpress.pipeline.finished.run import RunsError, read_unchanged
from skillpress.pipeline.finished.runs import known_runs, method_lines, places, table
from skillpress.pipeline.study.store import read_record
from tests.support.pipeline.finished_run import play_run

GRPO = {"reward": {"shaping": "none"}}


@pytest.fixture
def make(tmp_path: Path, repository: Path):
    return lambda name, *overlays: play_run(tmp_path / name, repository, *overlays)


def lines_of(*folders: Path):
    return list(method_lines([run for folder in folders for run in known_runs(folder)[0]]))


def test_seeds_of_a_method_are_one_line_with_the_interval_over_their_tasks(make) -> None:
    folders = [make("a", GRPO), make("b", GRPO, {"seed": 1}), make("c", {"reward": {"shaping_weight": 3.0}})]
    grpo, other = lines_of(*folders)
    won = [
        t.won for f in folders[:2] for t in read_rollouts(f / EVALUATION_ROLLOUTS) if t.policy == "trained"
    ]
    assert (grpo.method, grpo.seeds, grpo.trained.tasks) == ("GRPO", (0, 1), 48)
    assert grpo.trained.mean == pytest.approx(sum(won) / len(won))
    expected = wilson(grpo.trained.mean, 48)
    assert (grpo.trained.low, grpo.trained.high) == pytest.approx((expected.low, expected.high))
    assert grpo.trained.trainings_low is not None and other.trained.trainings_low is None
    assert (other.method, other.seeds) == ("SegCost (buffer) with reward.shaping_weight 3.0", (0,))


def test_another_start_or_evaluation_is_another_group_that_says_what_differs(make) -> None:
    wide = {"policy": {"width": 128}, "training": {"learning_rate": 0.001}}
    first, second = lines_of(make("a"), make("b", wide))
    assert (first.setting, second.setting) == ("", "policy.width 128")
    assert first.method == second.method == "SegCost (buffer)"


def test_a_majority_of_votes_is_a_figure_of_its_own(make) -> None:
    (line,) = lines_of(make("a", {"evaluation": {"votes": 3}}))
    assert line.votes == 3 and line.majority is not None and line.majority.tasks == 24
    assert line.majority.mean <= 1


def test_the_runs_of_a_studys_record_are_called_by_their_parameters(repository: Path) -> None:
    folder = repository / "studies" / "cooking_again"
    runs, unread = known_runs(folder)
    assert len(runs) == len(read_record(folder).runs) and unread == []
    lines = list(method_lines(runs))
    assert {line.method for line in lines if not line.setting} >= {"GRPO", "Pure Length", "SegCost (buffer)"}
    assert all(line.seeds == (20, 21, 22, 23, 24) for line in lines if not line.setting)


def test_a_lab_has_its_own_results_its_workspaces_and_its_studies(
    make, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    make("workspaces/grpo-seed0", GRPO)
    damaged = make("workspaces/damaged")
    (damaged / EVALUATION_ROLLOUTS).unlink()
    (tmp_path / "workspaces" / "unfinished").mkdir()
    shutil.copytree(repository / "studies" / "language_model", tmp_path / "studies" / "language_model")
    assert [str(place.relative_to(tmp_path)) for place in places(tmp_path)] == [
        "workspaces/damaged", "workspaces/grpo-seed0", "studies/language_model",
    ]  # fmt: skip
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert command(["runs", "--csv", str(tmp_path / "runs.csv")]) == 0
    said = capsys.readouterr().out
    assert "  GRPO\n      Pass@1 " in said and "24 tasks, seed 0; workspaces/grpo-seed0\n" in said
    assert "not read: " in said and "workspaces/damaged" in said
    assert said.splitlines()[-1].startswith("runs: 10 finished runs of ")
    frame = pl.read_csv(tmp_path / "runs.csv")
    assert frame.filter(where="workspaces/grpo-seed0")["tasks"].to_list() == [24]
    assert set(frame["where"]) == {"workspaces/grpo-seed0", "studies/language_model"}


def test_a_folder_without_a_run_and_a_lab_without_any_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    assert command(["runs", str(tmp_path)]) == exit_codes.USER_ERROR
    assert "holds neither results/evaluation.json" in capsys.readouterr().err
    record = str(Path(__file__).parents[4] / "studies" / "language_model")
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "runs.csv"):
        assert command(["runs", record, "--csv", str(path)]) == exit_codes.USER_ERROR
        assert f"--csv {path}: " in capsys.readouterr().err
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert command(["runs"]) == exit_codes.USER_ERROR
    assert "holds no finished run" in capsys.readouterr().err


def lock(folder: Path) -> None:
    """Write dvc.lock as DVC does: with the parameters that each stage read."""
    values = read_yaml(folder / "params.yaml")
    read = {key: values[key] for key in ("seed", "reward", "algorithm", "training")}
    read |= {"engine.name": values["engine"]["name"], "policy.width": values["policy"]["width"]}
    stages = {"train_policy": {"params": {"params.yaml": read}}, "report": {"cmd": "python"}}
    (folder / "dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))


@pytest.mark.parametrize(
    ("overlay", "said"),
    [
        ({"reward": {"shaping": "segcost"}}, "reward.shaping is segcost, but train_policy ran with none"),
        ({"seed": 3}, "seed is 3, but train_policy ran with 0"),
        ({"policy": {"width": 128}}, "policy.width is 128, but train_policy ran with 64"),
        ({"training": {"timeout": 60.0}}, ""),
        ({"rollouts": {"tasks": 1}}, ""),
    ],
)
def test_a_run_whose_parameters_were_edited_afterwards_is_not_called_by_the_new_ones(
    make, tmp_path: Path, overlay, said: str, capsys
) -> None:
    folder = make("a", GRPO)
    lock(folder)
    assert read_unchanged(folder).method.name == "grpo"
    values = read_yaml(folder / "params.yaml")
    for section, value in overlay.items():
        values[section] = {**values[section], **value} if isinstance(value, dict) else value
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    if not said:
        assert read_unchanged(folder).method.name == "grpo"
        return
    with pytest.raises(RunsError, match=said):
        read_unchanged(folder)
    for words in (["tables", str(folder), "--out", str(tmp_path / "out")], ["runs", str(folder)]):
        assert command(words) == exit_codes.USER_ERROR
        assert said in capsys.readouterr().err


def test_a_run_from_before_a_key_was_renamed_is_called_by_the_present_name(make) -> None:
    folder = make("a", {"reward": {"shaping_weight": 3.0}})
    lock(folder)
    label = "SegCost (buffer) with reward.shaping_weight 3.0"
    assert read_unchanged(folder).method.label == label
    for renamed in ("dvc.lock", "params.yaml"):  # the user may rename the key in a run that is finished
        text = (folder / renamed).read_text()
        (folder / renamed).write_text(text.replace("shaping_weight:", "efficiency:"))
        assert read_unchanged(folder).method.label == label


def test_a_damaged_lock_says_nothing_about_the_parameters(make) -> None:
    folder = make("a")
    for stages in (None, [], {"train_policy": None}, {"train_policy": {"params": 3}}):
        (folder / "dvc.lock").write_text(json.dumps({"stages": stages}))
        assert read_unchanged(folder).method.name == "segcost"


def test_the_table_has_a_line_per_method_even_without_a_figure(make) -> None:
    frame = table(lines_of(make("a")))
    assert frame["majority_mean"].to_list() == [None] and frame["method"].to_list() == ["SegCost (buffer)"]
