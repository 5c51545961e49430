"""Every other command reads what one command writes: no folder here was written by a test."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.cli.exporting import FORMATS
from skillpress.cli.viewing.found import find
from skillpress.core.rollout_files import read_rollouts
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.skills.dictionary import load_dictionary


def episodes_shown(path: Path) -> int:
    """How many episodes the viewer opens at this path; it also reads the words of the first."""
    found = find([path])
    with closing(RolloutCatalogue("test", found.sources, found.phrases)) as catalogue:
        assert catalogue.episode(catalogue.name(0)).steps
        return len(catalogue)


@pytest.mark.parametrize("name", ["evaluated", "explored"])
def test_view_opens_what_evaluate_leaves(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    assert episodes_shown(folder) == episodes_shown(folder / "rollouts.parquet") == 30


@pytest.mark.parametrize("name", ["evaluated", "explored"])
@pytest.mark.parametrize("kind", FORMATS)
def test_export_reads_what_evaluate_leaves_and_skills_reads_what_export_leaves(
    kind: str, name: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rollouts = request.getfixturevalue(name) / "rollouts.parquet"
    exported = tmp_path / ("out.jsonl" if kind != "datasets" else "out")
    assert main(["export", "--format", kind, str(rollouts), "--output", str(exported)]) == 0
    told = capsys.readouterr()
    assert "30 episodes" in told.out and ("no tokenizer" in told.err) == (name == "explored")
    if kind != "datasets":
        assert len(exported.read_text().splitlines()) == 30
    if kind == "atif":
        page = tmp_path / "skills"
        assert main(["skills", str(exported), "--output", str(page)]) == 0
        assert load_dictionary(page / "dictionary.json").alphabet


@pytest.mark.parametrize("name", ["evaluated", "explored"])
def test_skills_reads_what_evaluate_leaves(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    rollouts = request.getfixturevalue(name) / "rollouts.parquet"
    assert main(["skills", str(rollouts), "--output", str(tmp_path / "skills")]) == 0
    assert load_dictionary(tmp_path / "skills" / "dictionary.json").alphabet


def test_trajectory_ratio_reads_what_evaluate_leaves(evaluated: Path, policy: str, tmp_path: Path) -> None:
    out = tmp_path / "ratio"
    words = [str(evaluated / "rollouts.parquet"), policy, policy, "--output", str(out)]
    assert main(["trajectory-ratio", *words]) == 0
    assert json.loads((out / "trajectory_ratio.json").read_text())["trajectory"]["count"] == 30


def test_compare_reads_what_evaluate_leaves(evaluated: Path, explored: Path, tmp_path: Path) -> None:
    assert main(["compare", str(explored), str(evaluated), "--output", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["rows"]


@pytest.mark.slow
class TestOfAnExperiment:
    """Commands on the folder that ``skillpress run`` leaves."""

    @pytest.fixture
    def home(self, reproduced, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The experiment's folder; tests only read it."""
        monkeypatch.chdir(reproduced.folder)
        return Path()

    def test_view_opens_it_and_each_of_its_files(self, home: Path) -> None:
        assert len(find([home]).sources) == 3
        for name in ("base", "training", "evaluation"):
            file = Path("data/rollouts") / f"{name}.parquet"
            assert episodes_shown(file) == len(read_rollouts(file))

    @pytest.mark.parametrize("name", ["base", "training", "evaluation"])
    def test_export_and_skills_read_its_rollouts(self, name: str, home: Path, tmp_path: Path) -> None:
        file = f"data/rollouts/{name}.parquet"
        exported = str(tmp_path / "episodes.jsonl")
        assert main(["export", "--format", "atif", file, "--output", exported]) == 0
        for log in (file, exported):
            assert main(["skills", log, "--output", str(tmp_path / "skills")]) == 0

    def test_its_policy_is_evaluated_and_compared_and_has_a_ratio(self, home: Path, tmp_path: Path) -> None:
        played = ["--environment", "countdown", "--tasks", "4", "--votes", "1"]
        for model in ("base", "policy"):
            place = ["--model", f"models/{model}", "--output", str(tmp_path / model)]
            assert main(["evaluate", *played, *place]) == 0
        pair = [str(tmp_path / model) for model in ("base", "policy")]
        assert main(["compare", *pair, "--output", str(tmp_path / "compared")]) == 0
        ratio = ["models/policy", "models/base", "--output", str(tmp_path / "ratio"), "--policy", "start"]
        assert main(["trajectory-ratio", "data/rollouts/evaluation.parquet", *ratio]) == 0

    def test_tables_reads_it(self, home: Path, tmp_path: Path) -> None:
        assert main(["tables", ".", "--out", str(tmp_path)]) == 0
        assert "Table 1" in (tmp_path / "tables.md").read_text()
        assert main(["runs", "."]) == 0

    def test_reverse_parse_reads_its_successes(
        self, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It is luck whether so small a policy repeats a right action; the test checks that it was asked."""
        files = ["--tasks-file", "data/tasks/train.parquet", "--rollouts", "data/rollouts/base.parquet"]
        asked = ["--environment", "countdown", "--untold", "--tasks", "16", "--samples", "16", *files]
        place = ["--model", "models/base", "--output", str(tmp_path / "thoughts")]
        found = main(["reverse-parse", *asked, *place]) == 0
        assert found == (tmp_path / "thoughts" / "thoughts.parquet").exists()
        assert found or re.search(r"none of \d+ responses to \d+ states led", capsys.readouterr().err)
