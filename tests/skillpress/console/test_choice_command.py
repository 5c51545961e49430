"""``skillpress choice`` as users call it, on an experiment that has played and not trained."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from skillpress.console.command import main
from skillpress.core.sequence_files import write_sequences
from skillpress.core.trajectory import SkillSequence

ROUTINE = ("OP_Add-large-small", "OP_Mul-small-small")


@pytest.fixture
def experiment(repository: Path, tmp_path: Path) -> Path:
    """An experiment whose start wins every puzzle by one routine, and by another way."""
    ways = [("OP_Sub-small-small",) * (2 + puzzle % 3) for puzzle in range(8)]
    played = [
        SkillSequence(task_id=f"p{puzzle}", rollout_index=index, won=True, skills=skills)
        for puzzle, own in enumerate(ways)
        for index, skills in enumerate((ROUTINE, own))
    ]
    folder = tmp_path / "mine"
    write_sequences(folder / "data" / "skills" / "sequences.parquet", played)
    shutil.copy(repository / "params.yaml", folder)
    return folder


def test_it_says_what_each_condition_found(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choice", str(experiment)]) == 0
    first, *conditions, verdict = capsys.readouterr().out.splitlines()
    assert first == "8 tasks of 1 start policy, 8 of them won twice or more"
    assert [line[0] for line in conditions] == ["1", "2", "3", "4"]
    assert verdict.startswith(("no condition fails", "a segmentation cost can choose reuse: no"))


def test_several_experiments_are_seeds_of_one_benchmark(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["choice", str(experiment), str(experiment)]) == 0
    assert capsys.readouterr().out.startswith("16 tasks of 2 start policies, 16 of them")


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
