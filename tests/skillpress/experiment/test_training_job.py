"""Whole trainings are reproducible, and a kill does not change them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.skills.history import read_history
from skillpress.training.loop.describing.trained_episodes import scan_advantages
from skillpress.training.loop.keeping.checkpoint import VERSION, Checkpoints
from tests.support.experiment.killed_training import run, run_and_kill, same_files, same_weights, variant
from tests.support.programs.training_program import job, prepare

OVERLAY = """
processes: 1
training: {steps: 5, learning_rate: 0.01, checkpoint_every: 2}
environment: {max_steps: 8, max_numbers: 3}
imitation: {epochs: 4}
"""

BEHIND = OVERLAY.replace("0.01, checkpoint_every: 2", "0.002, checkpoint_every: 3, lag: 1")

REPLAYING = OVERLAY.replace(
    "checkpoint_every: 2", "checkpoint_every: 2, tasks_per_step: 2, replay: {groups: 3, staleness: 2}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("training")
    prepare(path, OVERLAY)
    lines = run(path, "whole")
    won = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert sum(won) > 0, "without a success the dictionary and its buffer would go untested"
    return path


def test_the_same_seed_gives_the_same_weights_and_training_changes_them(folder: Path) -> None:
    run(folder, "again")
    assert same_weights(folder, "whole", "again") and same_files(folder, "whole", "again")
    assert not same_weights(folder, "whole", "start")


@pytest.mark.kills
def test_a_run_killed_and_started_again_ends_with_the_same_weights(folder: Path) -> None:
    run_and_kill(folder, "killed", after=1)  # before any checkpoint
    run_and_kill(folder, "killed", after=4)  # between the checkpoint of step 2 and that of step 4
    lines = run(folder, "killed")
    assert lines[0].startswith("step 3 "), "it went on from the checkpoint of step 2"
    assert lines[-2] == "curve 1 2 3 4 5", "the curve is whole"
    assert same_weights(folder, "whole", "killed") and same_files(folder, "whole", "killed")
    steps = read_history(folder / "dictionaries-killed.json")
    assert min(steps) <= 2 < max(steps), "phrases from before the checkpoint and from after it"
    sampled = scan_advantages(folder / "advantages-killed.parquet").collect()
    assert sampled["training_step"].unique().sort().to_list() == [1, 2, 3, 4, 5]
    job(folder, "killed").checkpoints.clear()
    assert not any((folder / "checkpoints-killed").iterdir()), "what a finished run clears is its own"


@pytest.mark.kills
def test_rollouts_beside_the_updates_give_the_same_weights_killed_or_not_and_on_one_core_as_on_all(
    folder: Path, tmp_path: Path
) -> None:
    variant(folder, tmp_path, BEHIND)
    lines = run(tmp_path, "behind")
    assert (
        run(tmp_path, "one-core", prefix=("taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))))
        == lines
    )
    run_and_kill(tmp_path, "killed", after=2)  # before any checkpoint, when the third batch is already played
    run_and_kill(tmp_path, "killed", after=5)  # after the checkpoint of step 3
    assert run(tmp_path, "killed")[0].startswith("step 4 ")
    for name in ("one-core", "killed"):
        assert same_weights(tmp_path, "behind", name) and same_files(tmp_path, "behind", name)


@pytest.mark.kills
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_two_processes_play_beside_their_updates_and_resume(folder: Path, tmp_path: Path) -> None:
    variant(folder, tmp_path, BEHIND.replace("processes: 1", "processes: 2"))
    run(tmp_path, "behind")
    run_and_kill(tmp_path, "killed", after=5)
    assert run(tmp_path, "killed")[-2] == "curve 1 2 3 4 5"
    assert same_weights(tmp_path, "behind", "killed") and same_files(tmp_path, "behind", "killed")


@pytest.mark.kills
@pytest.mark.thorough
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_replays_groups_is_killed_and_ends_with_the_same_weights(
    processes: int, folder: Path, tmp_path: Path
) -> None:
    variant(folder, tmp_path, REPLAYING.replace("processes: 1", f"processes: {processes}"))
    run(tmp_path, "replaying")
    run_and_kill(tmp_path, "killed", after=3)  # after the checkpoint of step 2
    resumed = run(tmp_path, "killed")
    assert not resumed[0].startswith("step 1 ") and resumed[-2] == "curve 1 2 3 4 5"
    assert same_weights(tmp_path, "replaying", "killed") and same_files(tmp_path, "replaying", "killed")


@pytest.mark.kills
def test_the_best_that_a_run_leaves_is_its_policy_after_the_best_validated_step(
    folder: Path, tmp_path: Path
) -> None:
    variant(folder, tmp_path, OVERLAY.replace("checkpoint_every: 2", "checkpoint_every: 2, keep: best"))
    *_, curve, kept = run(tmp_path, "best")
    assert curve == "curve 1 2 3 4 5"
    found = re.search(r"SelectedCheckpoint\(rule='best', step=(\d)", kept)
    assert found and int(found[1]) in (2, 4, 5), "validated are the steps of checkpoints and the last"
    run_and_kill(tmp_path, "killed", after=4)
    assert run(tmp_path, "killed")[-1] == kept
    assert same_weights(tmp_path, "best", "killed")
    (tmp_path / "overlay.yaml").write_text(OVERLAY.replace("steps: 5", f"steps: {found[1]}"))
    run(tmp_path, "ended")
    assert same_weights(tmp_path, "best", "ended"), "validation changes nothing in training"


@pytest.mark.kills
@pytest.mark.slow
def test_two_processes_train_resume_and_agree_with_themselves(folder: Path, tmp_path: Path) -> None:
    variant(folder, tmp_path, OVERLAY.replace("steps: 5", "steps: 4").replace("processes: 1", "processes: 2"))
    run(tmp_path, "whole")
    run_and_kill(tmp_path, "killed", after=3)
    assert run(tmp_path, "killed")[-2] == "curve 1 2 3 4"
    assert same_weights(tmp_path, "whole", "killed") and same_files(tmp_path, "whole", "killed")


@pytest.mark.kills
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_two_processes_with_ratios_over_trajectories_resume(folder: Path, tmp_path: Path) -> None:
    overlay = OVERLAY.replace("steps: 5", "steps: 4").replace("processes: 1", "processes: 2")
    variant(folder, tmp_path, f"{overlay}\nalgorithm: {{ratio: trajectory}}\n")
    run(tmp_path, "whole")
    run_and_kill(tmp_path, "killed", after=3)
    assert run(tmp_path, "killed")[0].startswith("step 3 "), "it went on from the checkpoint of step 2"
    assert same_weights(tmp_path, "whole", "killed") and same_files(tmp_path, "whole", "killed")


def test_a_checkpoint_of_another_experiment_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "abc")
    assert checkpoints.latest() is None
    checkpoints.folder.mkdir()
    latest = checkpoints.folder / "latest.json"
    state = {"version": VERSION, "key": "other", "step": 2, "parts": {}, "curve": []}
    latest.write_text(json.dumps(state))
    with pytest.raises(StorageError, match=r"made by experiment other.*this one is abc"):
        checkpoints.latest()
    latest.write_text(json.dumps({"version": 1, "key": "abc", "step": 2, "buffer": [], "curve": []}))
    with pytest.raises(StorageError, match=rf"\(version 1\), this one is abc \(version {VERSION}\); delete"):
        checkpoints.latest()
    latest.write_text(json.dumps({**state, "key": "abc"}))
    with pytest.raises(StorageError, match="step-000002: missing"):
        checkpoints.latest()
    latest.write_text(json.dumps(state)[:20])
    with pytest.raises(StorageError, match=r"latest\.json: not valid JSON"):
        checkpoints.latest()
