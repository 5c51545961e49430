"""ALFWorld and TextWorld-Cooking from end to end: real engines, real games, every stage, very small."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from skillpress.experiment.params import read_yaml
from tests.support.clone import Clone

pytestmark = pytest.mark.slow

CLASSES = {"alfworld": {"iid", "ood"}, "textworld_cooking": {"simple", "hard"}}
PAPER_TABLES = {"alfworld": ("Table 6", "Table 7"), "textworld_cooking": ("Table 5", "Table 8")}


@pytest.mark.parametrize(
    "environment", ["alfworld", pytest.param("textworld_cooking", marks=pytest.mark.thorough)]
)
def test_an_environment_of_words_runs_through_every_stage(
    environment: str, repository: Path, alfworld_data: str, tmp_path: Path
) -> None:
    clone = Clone(repository, tmp_path)
    clone.set_params(read_yaml(repository / "params" / f"{environment}_smoke.yaml"))
    clone.set_params({"processes": 1})  # ranks with workers of their own: rollouts/workers/test_ranks.py
    clone.environment |= {"ALFWORLD_DATA": alfworld_data, "SKILLPRESS_GAMES": str(tmp_path / "games")}
    done = clone.python("skillpress.pipeline.reproduce")
    assert done.returncode == 0, done.stdout + done.stderr
    assert clone.ran(done.stdout)[-1] == "report"

    rollouts = pl.read_parquet(tmp_path / "data" / "rollouts" / "evaluation.parquet")
    episodes = rollouts.select("policy", "group_id", "rollout_index").unique()
    assert episodes.group_by("policy").len()["len"].to_list() == [8, 8, 8], "every game exactly once"

    evaluation = json.loads((tmp_path / "results" / "evaluation.json").read_text())
    assert all(name in json.dumps(evaluation) for name in CLASSES[environment])

    tables = clone.python("skillpress.cli.command", "tables", ".", "--out", "tables")
    assert tables.returncode == 0, tables.stderr
    written = (tmp_path / "tables" / "tables.md").read_text()
    assert all(title in written for title in ("Table 1", *PAPER_TABLES[environment]))

    again = clone.python("skillpress.pipeline.reproduce")
    assert clone.ran(again.stdout) == []
