"""What describes a training decides none of its weights: why an edit of it need not train again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillpress.experiment import training_job
from skillpress.pipeline.fingerprints import DESCRIBING
from skillpress.training.loop import reward_shaping, step
from skillpress.training.loop.describing.episode_sample import EpisodeSample
from tests.support.experiment.killed_training import same_weights
from tests.support.experiment.small_training import train_small
from tests.support.programs.training_program import prepare

OVERLAY = """
processes: 1
training: {steps: 3, learning_rate: 0.01}
environment: {max_steps: 8, max_numbers: 3}
"""


def silence(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Have every describer say nothing; returns their modules. Probes are left out by a parameter, as
    ``test_probes_train.py`` does."""

    def nothing(*arguments: Any, **named: Any) -> Any:
        return None

    monkeypatch.setattr(step, "batch_metrics", lambda *arguments: {"success": 0.0})
    monkeypatch.setattr(reward_shaping, "exploitable_share", lambda *arguments: 0.0)
    monkeypatch.setattr(reward_shaping, "earlier_share", lambda *arguments: 0.0)
    monkeypatch.setattr(training_job, "action_metrics", nothing)
    monkeypatch.setattr(EpisodeSample, "take", nothing)
    monkeypatch.setattr(EpisodeSample, "write", nothing)
    return {
        "skillpress.training.loop.describing.batch_metrics",
        "skillpress.training.loop.describing.probes",
        "skillpress.training.loop.describing.episode_sample",
        "skillpress.training.loop.describing.action_metrics",
        "skillpress.experiment.described_actions",
        "skillpress.skills.exploitable",
        "skillpress.skills.earlier_share",
    }


def test_without_what_describes_a_training_leaves_the_same_weights_and_dictionaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, OVERLAY)
    overlay = {"processes": 1, "training": {"steps": 3, "learning_rate": 0.01},
               "environment": {"max_steps": 8, "max_numbers": 3}}  # fmt: skip
    whole = train_small(tmp_path, "whole", overlay)
    assert any(row["success"] for row in whole) and "skills/exploitable_rate" in whole[-1]
    assert silence(monkeypatch) == DESCRIBING["train_policy"].keys()
    silent = train_small(tmp_path, "silent", overlay)
    assert len(silent[-1]) < len(whole[-1])
    assert same_weights(tmp_path, "whole", "silent")
    names = [tmp_path / f"dictionaries-{output}.json" for output in ("whole", "silent")]
    assert names[0].read_bytes() == names[1].read_bytes()
