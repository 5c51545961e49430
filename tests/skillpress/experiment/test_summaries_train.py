"""A policy that summarises its past is also trained on its summaries, and no other figure counts them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from skillpress.experiment.training import train
from skillpress.rollouts.agents.summarize import Summarize
from tests.support.programs.training_program import job, prepare

ROOT = Path(__file__).parents[3]
OVERLAY = """
environment: {max_steps: 8, max_numbers: 3}
policy: {state_update: "NAME:wordless", history: 2}
reward: {measures: {format: {weight: 0.1, credit: step}}}
training: {steps: 1, learning_rate: 0.01}
"""


@dataclass(frozen=True)
class Wordless(Summarize):
    """Summaries for a scratch policy, which has no words for a question: anything it says is a summary."""

    request = ""


def wordless(turns: int | None) -> Wordless:
    return Wordless(turns)


def test_summaries_are_trained_and_cost_no_step(tmp_path: Path) -> None:
    # No episode is won; PPO's values learn from all of them.
    overlay = OVERLAY.replace("NAME", __name__) + (ROOT / "params" / "ppo.yaml").read_text()
    prepare(tmp_path, overlay, demonstrations=0)
    (row,) = train(job(tmp_path, "trained"))
    assert row["summaries"] > 1 and row["episode_length"] <= 8
    assert row["decisions_per_environment_step"] == pytest.approx(
        1 + row["summaries"] / row["episode_length"]
    )
    assert np.isfinite(row["loss"]) and row["tokens_sampled"] > row["episode_length"]
    # The learner scores every decision in its own prompt, so it agrees with the engine.
    assert row["mismatch/largest"] < 1e-3
    assert 0 < row["reward/format"] <= 0.1 and row["response_tokens"] > 0
