"""A training that begins with the start policy's successes uses them, and resumes bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillpress.core.task_files import read_tasks
from skillpress.skills.buffer import Success
from skillpress.skills.history import read_history
from skillpress.skills.start import write_start
from tests.support.experiment.killed_training import same_files, same_weights
from tests.support.experiment.small_training import StoppedError, train_small
from tests.support.programs.training_program import parameters, prepare

PHRASE = tuple(
    f"OP_Add-{operands}"
    for operands in ("large-large", "large-near_target", "large-small", "near_target-near_target")
)
BEGUN = 16
"""Successes that training begins with."""
SMALL = {
    "processes": 1,
    "training": {"steps": 3, "learning_rate": 0.01, "checkpoint_every": 1},
    "environment": {"max_steps": 8, "max_numbers": 3},
    "skills": {"start": "rollouts", "buffer": 256},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a training begins with successes whose skills repeat."""
    path = tmp_path_factory.mktemp("begun")
    prepare(path, yaml.safe_dump(SMALL))
    params, tasks = parameters(path, smoke=True), read_tasks(path / "train.parquet")
    alphabet = params.environment.make_projection().alphabet
    assert alphabet[: len(PHRASE)] == PHRASE
    successes = [Success(PHRASE, task.task_id) for task in tasks[:BEGUN]]
    assert write_start(path / "start.json", params.skills, successes, alphabet, params.seed) == BEGUN
    return path


def test_the_first_batch_is_judged_with_them_and_a_stopped_training_ends_with_the_same_bytes(
    folder: Path,
) -> None:
    curve = train_small(folder, "whole", SMALL)
    shares = {row["step"]: row["dictionary/earlier_share"] for row in curve if row["success"]}
    first = min(shares)
    won = curve[int(first) - 1]["success"] * 16
    assert shares[first] == pytest.approx(BEGUN / (BEGUN + won))
    assert read_history(folder / "dictionaries-whole.json")[0][PHRASE] == BEGUN

    with pytest.raises(StoppedError):
        train_small(folder, "stopped", SMALL, stop_after=3)  # the checkpoint of step 2 has the buffer
    train_small(folder, "stopped", SMALL)
    assert same_weights(folder, "whole", "stopped") and same_files(folder, "whole", "stopped")
