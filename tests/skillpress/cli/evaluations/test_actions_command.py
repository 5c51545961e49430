"""``skillpress actions`` as users call it, on a small policy's episodes, beside the exact probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from skillpress.cli.command import main
from skillpress.cli.evaluations.actions import drawn_states
from skillpress.core.engine import Sampling
from skillpress.core.rollout_files import read_rollouts
from skillpress.models.macro_policy.enumeration import Enumeration
from skillpress.models.policy import load_policy
from skillpress.pipeline.exit_codes import USER_ERROR
from skillpress.rollouts.agents.parsing import plain

STATES, SAMPLES = 12, 200


def test_estimates_hold_the_exact_probabilities_and_repeat(
    evaluated: Path, policy: str, tmp_path: Path
) -> None:
    rollouts, output = evaluated / "rollouts.parquet", tmp_path / "found"
    asked = ["actions", str(rollouts), policy, "--environment", "countdown", "--output", str(output)]
    asked += ["--states", str(STATES), "--samples", str(SAMPLES)]
    assert main(asked) == 0
    found = pl.read_parquet(output / "actions.parquet")
    model = load_policy(policy)
    exact = Enumeration(
        model.model,
        Sampling(temperature=1.0, max_new_tokens=4),
        model.stop_token_ids,
        read=lambda tokens: plain(model.decode(tokens)).action,
        cut=1e-4,
    )
    prompts = [step.prompt_ids for _, step in drawn_states(read_rollouts(rollouts), STATES, 0)]
    held = [
        row["share_low"] <= there.probability(row["taken"]).high
        and there.probability(row["taken"]).low <= row["share_high"]
        for row, there in zip(found.iter_rows(named=True), exact(prompts), strict=True)
    ]
    assert len(held) == STATES and sum(held) >= STATES - 3  # each holds in 95% of draws
    assert json.loads((output / "actions.json").read_text())["samples"] == SAMPLES
    first = found.rows()
    assert main(asked) == 0 and pl.read_parquet(output / "actions.parquet").rows() == first


def test_episodes_without_tokens_are_refused(
    explored: Path, policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["actions", str(explored / "rollouts.parquet"), policy, "--environment", "countdown"]
    assert main([*asked, "--output", str(tmp_path)]) == USER_ERROR
    assert "has no tokens" in capsys.readouterr().err
