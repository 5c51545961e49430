"""``skillpress reproduce``: tables of runs, of the code and of commands, and what is refused at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli import reproduce
from skillpress.cli.command import main
from skillpress.core.storage import read_json
from skillpress.core.yaml_files import parse_yaml, write_yaml
from skillpress.evaluation.paper.manifest import PLACE, read_manifest
from skillpress.pipeline import exit_codes, parent
from tests.support.pipeline.finished_run import SMALL, play_run

METHODS: dict[str, dict[str, Any]] = {
    "grpo": {"reward": {"shaping": "none"}},
    "segcost_no_buffer": {"skills": {"buffer": 0}},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    return [str(play_run(folder / name, repository, overlay)) for name, overlay in METHODS.items()]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The manifest with a scale of Countdown whose runs are those of ``play_run``."""
    folder = tmp_path_factory.mktemp("manifest")
    (folder / "tiny.yaml").write_text(write_yaml(SMALL), encoding="utf-8")
    values = parse_yaml((repository / PLACE).read_text(encoding="utf-8"), PLACE)
    own = {"overlays": [str(folder / "tiny.yaml")], "seeds": [0]}
    values["scales"]["smoke"]["benchmarks"]["countdown"] = own
    (folder / "tables.yaml").write_text(write_yaml(values), encoding="utf-8")
    return folder / "tables.yaml"


def test_a_table_of_finished_runs_stands_beside_the_printed_figures_and_leaves_a_record(
    runs: list[str], tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--scale", "smoke", "--manifest", str(tiny), "--out", str(tmp_path), "--runs", *runs]
    assert main(["reproduce", "table 4", *words]) == 0
    shown = capsys.readouterr().out
    assert "## Table 4. Closing operations" in shown and "paper: 359 of 700" in shown
    found = read_json(tmp_path / "smoke" / "table_4.json")
    assert [(run["benchmark"], run["method"], run["seed"]) for run in found["runs"]] == [
        ("countdown", "grpo", 0),
        ("countdown", "segcost_no_buffer", 0),
    ]
    assert found["runs"][0]["overlays"][1:] == ["params/grpo.yaml"] and found["scale"] == "smoke"
    (added, *_) = found["lines"]
    assert added["row"] == "closing_add" and added["cells"]["grpo"]["paper"] == "359 of 700"
    assert added["cells"]["round_length"] == {"unit": "count", "episodes": 0, "paper": "393 of 800"}
    assert (tmp_path / "smoke" / "table_4.csv").is_file() and (tmp_path / "smoke" / "table_4.md").is_file()


def test_a_run_of_other_parameters_is_refused_and_no_table_is_written(
    tiny: Path, tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = play_run(tmp_path / "odd", repository, {"training": {"learning_rate": 0.1}})
    words = ["--scale", "smoke", "--manifest", str(tiny), "--out", str(tmp_path / "out"), "--runs", str(odd)]
    assert main(["reproduce", "4", *words]) == exit_codes.USER_ERROR
    assert "training.learning_rate is 0.1, the manifest's runs have 0.0004" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_mapping_of_table_3_is_the_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "Table 3", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert (
        "| go to drawer 1, open drawer 1 (after take ladle 1 from drawer 1) | Transport | Transport |"
        in shown
    )
    assert "26 skills in the paper, 26 here" in shown and (tmp_path / "table_3.md").is_file()


def test_a_projection_that_is_not_the_printed_one_is_named(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = parse_yaml((repository / PLACE).read_text(encoding="utf-8"), PLACE)
    values["tables"]["Table 3"]["mapping"]["alfworld"]["lines"][0]["skill"] = "Transport"
    (tmp_path / "tables.yaml").write_text(write_yaml(values), encoding="utf-8")
    words = ["--manifest", str(tmp_path / "tables.yaml"), "--out", str(tmp_path)]
    assert main(["reproduce", "3", *words]) == exit_codes.USER_ERROR
    shown, refused = capsys.readouterr()
    assert "| go to drawer 1, open drawer 1 | Transport | Explore |" in shown
    assert "Table 3: the projections of alfworld are not the printed ones" in refused


def test_the_figures_of_a_command_stand_beside_the_papers(repository: Path) -> None:
    made = read_manifest(repository / PLACE).tables["F.1"].made
    assert made is not None
    shown = [*reproduce._figures(made)]
    greedy = read_json(repository / made.writes)["nats_without_lengths"]["searches"]["greedy"]["mean_nats"]
    assert shown[:3] == ["| figure | here | paper |", "|---|---|---|", f"| greedy | {greedy:g} | 7.25 |"]
    assert len(shown) == 2 + len(made.figures)


def test_a_dry_run_names_runs_and_cost_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    assert main(["reproduce", "Table 1", "F.1", "--scale", "paper", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "F.1: greedy against exhaustive search; no training: `python -m benchmarks.f1_ablation`" in shown
    methods = "grpo, round_length, segcost, segcost_no_buffer"
    assert f"countdown: 4 trainings, {methods} with seed 0; each at most 20.2 hours" in shown
    assert "all: 12 trainings, at most 2,567 GPU-hours" in shown and shown.endswith("nothing was started\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Table 40"], "'Table 40' is not a table of the manifest; its tables are Table 1, "),
        (["4", "--scale", "tiny"], "--scale: no 'tiny' in the manifest; there are paper, small, smoke"),
        (["4", "--only", "alfworld"], "--only: is 'alfworld', and these tables have runs of countdown"),
        (["4", "--set", "training.steps=5"], "training.steps is 5, the manifest's runs have 60"),
        (["4", "--scale", "paper"], "--scale paper: needs 8 GPUs, but this machine has 0; --dry-run says"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("subprocess.Popen", None)
    assert main(["reproduce", *words]) == exit_codes.USER_ERROR
    assert f"reproduce: {said}" in capsys.readouterr().err.replace("grpo on countdown, scale small: ", "")


def test_a_module_of_the_lab_that_fails_is_named_with_its_exit_code_and_is_told_whose_end_ends_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(parent.VARIABLE, "0")
    with pytest.raises(
        reproduce.NotReproducedError, match=r"python -m json.tool nowhere.json failed with exit code [12]"
    ):
        reproduce._in_lab("json.tool", "nowhere.json")
    assert "nowhere.json" in capfd.readouterr().err and os.environ[parent.VARIABLE] == str(os.getpid())


def test_a_record_is_json_that_a_reader_without_this_library_understands(repository: Path) -> None:
    manifest = read_manifest(repository / PLACE)
    files = sorted((repository / "studies" / "reuserl" / "made").glob("*/*.json"))
    assert files
    for file in files:
        found = json.loads(file.read_text(encoding="utf-8"))
        entry = manifest.tables[found["table"]]
        assert {run["method"] for run in found["runs"]} == set(manifest.methods_of(found["table"]))
        assert {line["row"] for line in found["lines"]} >= {
            row for rows in entry.rows.values() for row in rows
        }
        assert "dirty" not in found["code"]
