"""Imitation and episodes over two ranks give the same bytes on any machine, and a kill loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from skillpress.core.task_files import write_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.experiment.collection import share_of
from skillpress.experiment.params import load_params
from skillpress.rollouts.collection import requests
from tests.support import nursery
from tests.support.programs import PROGRAMS

PROGRAM = PROGRAMS / "rank_program.py"
OVERLAY = {
    "processes": 2,
    "environment": {"max_steps": 8, "max_numbers": 3},
    "imitation": {"demonstrations": 600, "batch_size": 32},
    "training": {"microbatch_tokens": 100},  # an update of imitation takes several passes
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """Tasks and parameters, with the results of two ranks on all cores."""
    path = tmp_path_factory.mktemp("ranks")
    (path / "overlay.yaml").write_text(yaml.safe_dump(OVERLAY))
    params = load_params(
        repository / "params.yaml", repository / "params" / "smoke.yaml", path / "overlay.yaml"
    )
    made = params.environment.checked_tasks(SplitSizes(32, 1, 1), 0)
    write_tasks(path / "train.parquet", [task for task in made if task.split == "train"])
    run(path, "whole")
    return path


def run(folder: Path, output: str, *options: str) -> list[str]:
    finished = nursery.run(PROGRAM, str(folder), output, *options)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout.splitlines()


def run_and_kill(folder: Path, output: str, pause: str, at: str) -> None:
    with nursery.killed(PROGRAM, str(folder), output, "--pause-at", pause) as lines:
        assert any(line.strip() == at for line in lines), "it ended before"


def contents(folder: Path, output: str) -> tuple[bytes, bytes, list[float]]:
    """The bytes of weights and rollouts, and the losses."""
    made = folder / output
    weights = (made / "policy" / "model.safetensors").read_bytes()
    losses = json.loads((made / "losses.json").read_text())
    return weights, (made / "played.parquet").read_bytes(), losses


@pytest.mark.timeout(900)
def test_two_ranks_make_the_same_bytes_on_one_core_as_on_all(folder: Path) -> None:
    run(folder, "one-core", "--cores", "1")
    assert contents(folder, "one-core") == contents(folder, "whole")


@pytest.mark.kills
@pytest.mark.thorough
def test_a_job_that_was_killed_while_imitating_and_while_playing_goes_on_to_the_same_end(
    folder: Path,
) -> None:
    run_and_kill(folder, "killed", "imitation", "update 0 30")
    run_and_kill(folder, "killed", "episodes", "episodes 8")
    lines = run(folder, "killed")
    assert "demonstration 0 300" in lines and "demonstration 0 1" not in lines, "none was made again"
    weights, _, losses = contents(folder, "killed")
    assert (weights, losses) == (contents(folder, "whole")[0], contents(folder, "whole")[2])
    found, expected = (
        pl.read_parquet(folder / name / "played.parquet").drop("logprobs") for name in ("killed", "whole")
    )
    assert found.equals(expected), "but for the rounding of log-probabilities in other batches"


def test_one_rank_learns_what_two_learn_but_for_rounding(folder: Path) -> None:
    (folder / "overlay.yaml").write_text(yaml.safe_dump({**OVERLAY, "processes": 1}))
    run(folder, "alone")
    _, _, losses = contents(folder, "alone")
    np.testing.assert_allclose(losses, contents(folder, "whole")[2], rtol=1e-3)


def test_episodes_of_a_task_stay_together_and_tasks_are_dealt_out_in_turn() -> None:
    tasks = [Task(str(number), "countdown", 0, {}) for number in range(5)]
    wanted = requests(tasks, 3, 0, "base")
    first, second = (list(share_of(wanted, 100, rank, 2)) for rank in range(2))
    assert [number for number, _ in first] == [100, 101, 102, 106, 107, 108, 112, 113, 114]
    assert [number for number, _ in second] == [103, 104, 105, 109, 110, 111]
    assert all(request == wanted[number - 100] for number, request in first + second)
