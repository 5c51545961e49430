"""``skillpress export`` as users call it; the formats' own tests check their contents."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import pytest

from skillpress.cli import command
from skillpress.cli.exporting import FORMATS, tokenizer_beside
from skillpress.core.rollout_files import write_rollouts
from skillpress.pipeline import exit_codes
from tests.support.integrations.playing import episode, write_tokenizer

PLAYED = [episode(number, f"task-{number}") for number in range(3)]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run, with the episodes and the tokenizer of its policy."""
    monkeypatch.chdir(tmp_path)
    write_rollouts("data/rollouts/base.parquet", PLAYED)
    write_tokenizer(Path("models/base"))
    return tmp_path


def export(name: str, rollouts: str | Path, output: str, *more: str) -> int:
    return command.main(["export", "--format", name, str(rollouts), "--output", output, *more])


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_written_with_the_words_of_the_runs_own_tokenizer(
    name: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(name, "data/rollouts/base.parquet", "out") == 0
    assert "3 episodes: out" in capsys.readouterr().out
    if name == "datasets":
        texts = datasets.load_from_disk("out")["completion"][:3]
    elif name == "atif":
        texts = [step["message"] for step in json.loads(Path("out/000000.json").read_text())["steps"][1:]]
    else:
        turns = json.loads(Path("out").read_text().splitlines()[0])["conversations"]
        texts = [turns[1]["value"], "a door", turns[3]["value"]]
    assert texts == ["think first open", "a door", "open it"]


def test_the_tokenizer_is_that_of_the_run_or_of_the_model_that_an_evaluation_names(
    run: Path, evaluated: Path, explored: Path, policy: str
) -> None:
    assert tokenizer_beside(Path("data/rollouts/base.parquet")) == run / "models" / "base"
    assert tokenizer_beside(evaluated / "rollouts.parquet") == Path(policy)
    assert tokenizer_beside(explored / "rollouts.parquet") is None
    assert tokenizer_beside(run / "rollouts.parquet") is None
    assert tokenizer_beside(Path("/rollouts.parquet")) is None, "no folder above it could be a run's"


def test_an_evaluations_model_is_found_from_any_folder(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(experiment)
    place = ["--model", "models/policy", "--output", "results/evaluations/mine"]
    played = ["--environment", "countdown", "--tasks", "2", "--votes", "1", *place]
    assert command.main(["evaluate", *played]) == 0
    monkeypatch.chdir(tmp_path)
    found = tokenizer_beside(experiment / "results" / "evaluations" / "mine" / "rollouts.parquet")
    assert found == experiment.resolve() / "models" / "policy"


def test_without_a_tokenizer_it_says_what_is_missing_and_with_one_named_it_is_there(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rollouts("moved/base.parquet", PLAYED)
    assert export("sharegpt", "moved/base.parquet", "short.jsonl") == 0
    assert "no tokenizer lies where moved/base.parquet was made" in capsys.readouterr().err
    assert export("sharegpt", "moved/base.parquet", "full.jsonl", "--tokenizer", "models/base") == 0
    first = [json.loads(Path(name).read_text().splitlines()[0]) for name in ("short.jsonl", "full.jsonl")]
    said = [talk["conversations"][1]["value"] for talk in first]
    assert said == ["think first\nopen", "think first open"]


@pytest.mark.parametrize(
    ("rollouts", "output", "message"),
    [
        ("data/rollouts/base.parquet", "models", "--output: models exists already; name another path"),
        ("data/rollouts/none.parquet", "out", "data/rollouts/none.parquet: no such file"),
        ("empty.parquet", "out", "empty.parquet: has no episodes"),
        ("models/base/tokenizer.json", "out", "not a readable Parquet file"),
    ],
)
def test_what_cannot_be_exported_is_one_clear_line(
    rollouts: str, output: str, message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rollouts("empty.parquet", [])
    before = sorted(run.rglob("*"))
    assert export("atif", rollouts, output) == exit_codes.USER_ERROR
    assert message in capsys.readouterr().err
    assert sorted(run.rglob("*")) == before


def test_what_a_killed_export_left_half_written_is_swept_up_by_the_next(run: Path) -> None:
    left = run / ".out.abc123"
    left.mkdir()
    assert export("atif", "data/rollouts/base.parquet", "out") == 0
    assert not left.exists()
