"""Whole trainings: reproducible, and indifferent to being killed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from training_program import job, prepare

from skillpress.errors import StorageError
from skillpress.skills.history import read_history
from skillpress.training.checkpoint import Checkpoints

PROGRAM = Path(__file__).parent / "training_program.py"
OVERLAY = """
processes: 1
training: {steps: 5, learning_rate: 0.01, checkpoint_every: 2}
environment: {max_steps: 8, max_numbers: 3}
imitation: {epochs: 4}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("training")
    prepare(path, OVERLAY)
    lines = run(path, "whole")
    won = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert sum(won) > 0, "without a success the dictionary and its buffer would go untested"
    return path


def run(folder: Path, output: str) -> list[str]:
    command = [sys.executable, str(PROGRAM), str(folder), output, "--smoke"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout.splitlines()


def run_and_kill(folder: Path, output: str, after: int) -> None:
    """Start the training and ``kill -9`` it once it has reported step ``after``."""
    command = [sys.executable, str(PROGRAM), str(folder), output, "--smoke", "--pause-after", str(after)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"step {after} "):
                break
        process.kill()


def same_weights(folder: Path, first: str, second: str) -> bool:
    files = [load_file(folder / name / "model.safetensors") for name in (first, second)]
    return all(bool((files[0][name] == files[1][name]).all()) for name in files[0])


def same_history(folder: Path, first: str, second: str) -> bool:
    contents = [(folder / f"dictionaries-{name}.json").read_bytes() for name in (first, second)]
    return contents[0] == contents[1]


def test_the_same_seed_gives_the_same_weights_and_training_changes_them(folder: Path) -> None:
    run(folder, "again")
    assert same_weights(folder, "whole", "again") and same_history(folder, "whole", "again")
    assert not same_weights(folder, "whole", "start")


def test_a_run_killed_and_started_again_ends_with_the_same_weights(folder: Path) -> None:
    run_and_kill(folder, "killed", after=1)  # before any checkpoint
    run_and_kill(folder, "killed", after=4)  # between the checkpoint of step 2 and that of step 4
    lines = run(folder, "killed")
    assert lines[0].startswith("step 3 "), "it went on from the checkpoint of step 2"
    assert lines[-2] == "curve 1 2 3 4 5", "the curve is whole"
    assert same_weights(folder, "whole", "killed") and same_history(folder, "whole", "killed")
    steps = read_history(folder / "dictionaries-killed.json")
    assert min(steps) <= 2 < max(steps), "phrases from before the checkpoint and from after it"
    job(folder, "killed").checkpoints.clear()
    assert not any((folder / "checkpoints-killed").iterdir()), "what a finished run clears is its own"


def test_the_best_that_a_run_leaves_is_its_policy_after_the_best_validated_step(tmp_path: Path) -> None:
    overlay = OVERLAY.replace("checkpoint_every: 2", "checkpoint_every: 2, keep: best")
    prepare(tmp_path, overlay)
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


def test_two_processes_train_resume_and_agree_with_themselves(tmp_path: Path) -> None:
    prepare(tmp_path, OVERLAY.replace("steps: 5", "steps: 4").replace("processes: 1", "processes: 2"))
    run(tmp_path, "whole")
    run_and_kill(tmp_path, "killed", after=3)
    assert run(tmp_path, "killed")[-2] == "curve 1 2 3 4"
    assert same_weights(tmp_path, "whole", "killed") and same_history(tmp_path, "whole", "killed")


def test_a_checkpoint_of_another_experiment_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "abc")
    assert checkpoints.latest() is None
    checkpoints.folder.mkdir()
    latest = checkpoints.folder / "latest.json"
    state = {"version": 1, "key": "other", "step": 2, "buffer": [], "curve": []}
    latest.write_text(json.dumps(state))
    with pytest.raises(StorageError, match=r"made by experiment other.*this one is abc"):
        checkpoints.latest()
    latest.write_text(json.dumps({**state, "key": "abc"}))
    with pytest.raises(StorageError, match="step-000002: missing"):
        checkpoints.latest()
    latest.write_text(json.dumps(state)[:20])
    with pytest.raises(StorageError, match=r"latest\.json: not valid JSON"):
        checkpoints.latest()
