"""``skillpress choice`` as users call it, on an experiment that has played and not trained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.core.sequence_files import write_sequences
from skillpress.core.storage import write_text
from skillpress.core.trajectory import SkillSequence
from skillpress.core.yaml_files import read_yaml_file, write_yaml
from skillpress.pipeline.settings import ROOT

ROUTINE = ("OP_Add-large-small", "OP_Mul-small-small")


def experiment_of(folder: Path, tasks: int = 12, seed: int = 0, success: float = 10.0) -> Path:
    """An experiment whose start wins every puzzle by one routine, and by another way. λ is the success."""
    ways = [("OP_Sub-small-small",) * (2 + puzzle % 3) for puzzle in range(tasks)]
    played = [
        SkillSequence(task_id=f"p{puzzle}", rollout_index=index, won=True, skills=skills)
        for puzzle, own in enumerate(ways)
        for index, skills in enumerate((ROUTINE, own))
    ]
    write_sequences(folder / "data" / "skills" / "sequences.parquet", played)
    values = read_yaml_file(ROOT / "params.yaml")
    values["seed"], values["reward"]["success"], values["reward"]["shaping_weight"] = seed, success, success
    write_text(folder / "params.yaml", write_yaml(values))
    return folder


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    return experiment_of(tmp_path / "mine")


def test_it_says_what_each_condition_found(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choice", str(experiment)]) == 0
    first, ways, intervals, *conditions, verdict = capsys.readouterr().out.splitlines()
    assert first == "12 tasks of 1 start policy, 12 of them won twice or more"
    assert ways.startswith("12 of these in several ways, 4 in several ways of equal length, ")
    assert "over tasks" in intervals
    assert [line[0] for line in conditions] == ["1", "2", "3", "4"]
    assert all(re.search(r"\(.+ to .+; \d+ tasks\)", line) for line in conditions)
    assert verdict.startswith("from this start policy, a segmentation cost can choose reuse: ")


@pytest.mark.parametrize("success", [0.01, 0.9, 1.0, 1000.0])
def test_the_scale_of_the_rewards_changes_no_line(
    tmp_path: Path, success: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["choice", str(experiment_of(tmp_path / "ten"))]) == 0
    of_ten = capsys.readouterr().out
    assert main(["choice", str(experiment_of(tmp_path / "scaled", success=success))]) == 0
    assert capsys.readouterr().out == of_ten


@pytest.mark.parametrize("tasks", [1, 2, 9])
def test_a_few_tasks_give_no_verdict(tmp_path: Path, tasks: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choice", str(experiment_of(tmp_path / "few", tasks=tasks))]) == 0
    said = capsys.readouterr().out
    assert said.endswith("can choose reuse: undecided: 1, 2, 3, 4\n")
    assert f"{tasks} task" in said.splitlines()[3]


def test_several_experiments_are_seeds_of_one_benchmark(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = experiment_of(tmp_path / "other", seed=1)
    assert main(["choice", str(experiment), str(other)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("24 tasks of 2 start policies, 24 of them") and "over start policies" in said


def test_the_same_start_twice_is_refused(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choice", str(experiment), str(experiment)]) == 2
    assert "has the seed of" in capsys.readouterr().err


def test_starts_of_another_benchmark_are_refused_by_what_differs(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = experiment_of(tmp_path / "other", seed=1)
    values = read_yaml_file(other / "params.yaml")
    values["environment"]["max_steps"] = 20
    write_text(other / "params.yaml", write_yaml(values))
    assert main(["choice", str(experiment), str(other)]) == 2
    assert "other/params.yaml: environment not as in" in capsys.readouterr().err


def test_a_folder_without_sequences_is_named(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (experiment / "data" / "skills" / "sequences.parquet").unlink()
    assert main(["choice", str(experiment)]) == 2
    assert "sequences.parquet" in capsys.readouterr().err


def test_skills_of_another_environment_are_refused(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = SkillSequence(task_id="p0", rollout_index=0, won=True, skills=("fly",))
    write_sequences(experiment / "data" / "skills" / "sequences.parquet", [strange])
    assert main(["choice", str(experiment)]) == 2
    said = capsys.readouterr().err
    assert "sequences.parquet" in said and "'fly'" in said and "countdown" in said
