"""A gymnasium environment from end to end: TextArena's Wordle, every stage, very small."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from skillpress.environments.gymnasium_text.wordle import opening
from skillpress.experiment.params import read_yaml
from tests.support.clone import Clone

pytestmark = pytest.mark.thorough


def test_wordle_runs_through_every_stage_and_is_learned_by_imitation(
    repository: Path, tmp_path: Path
) -> None:
    clone = Clone(repository, tmp_path)
    overlay = read_yaml(repository / "params" / "wordle_smoke.yaml")
    clone.set_params(overlay)
    clone.set_params({"training": {"steps": 1}})
    done = clone.python("skillpress.pipeline.reproduce")
    assert done.returncode == 0, done.stdout + done.stderr
    assert clone.ran(done.stdout)[-1] == "report"

    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())
    assert metrics["start"]["pass_at_1"] > metrics["explorer"]["pass_at_1"] + 0.2
    phrases = pl.read_csv(tmp_path / "results" / "phrases.csv").filter(pl.col("length") > 1)
    most_used = phrases.sort("uses")["phrase"][-1]
    words = overlay["environment"]["kwargs"]["words"]
    assert most_used.startswith(f"{opening(tuple(words))} → "), "a phrase is an opening"

    pinned = json.loads((tmp_path / "data" / "fingerprints" / "train_policy.json").read_text())
    assert pinned["data"]["textarena"] == "0.7.4"
    again = clone.python("skillpress.pipeline.reproduce")
    assert clone.ran(again.stdout) == []
