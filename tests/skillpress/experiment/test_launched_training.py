"""A training whose ranks are started by torchrun writes the same bytes as one that starts them itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from skillpress.rollouts.workers.ranks import free_port
from tests.support.programs import PROGRAMS, importing
from tests.support.programs.training_program import prepare

PROGRAM = PROGRAMS / "training_program.py"
OVERLAY = """
processes: 2
training: {steps: 6, learning_rate: 0.01, checkpoint_every: 2}
environment: {max_steps: 8, max_numbers: 3}
imitation: {epochs: 4}
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("launched")
    prepare(path, OVERLAY)
    run([sys.executable, str(PROGRAM), str(path), "alone", "--smoke"])
    return path


def torchrun(folder: Path, output: str, *options: str) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "0"]
    meeting = ["--master-port", str(free_port())]
    program = [str(PROGRAM), str(folder), output, "--smoke", *options]
    return [sys.executable, *launcher, *meeting, *program]


def run(command: list[str]) -> list[str]:
    finished = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=importing()
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout.splitlines()


def weights(folder: Path, name: str) -> bytes:
    return (folder / name / "model.safetensors").read_bytes()


@pytest.mark.thorough
def test_the_weights_are_those_of_two_processes_started_here_byte_for_byte(folder: Path) -> None:
    lines = run(torchrun(folder, "launched"))
    assert [line for line in lines if line.startswith("step 6 ")], "rank 0 reports"
    assert len([line for line in lines if line.startswith("curve")]) == 1, "and no other"
    assert weights(folder, "launched") == weights(folder, "alone")


@pytest.mark.kills
def test_a_killed_rank_is_named_and_a_new_start_goes_on_from_the_checkpoint(folder: Path) -> None:
    command = torchrun(folder, "killed", "--pause-after", "3")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=importing()
    ) as launcher:
        assert launcher.stdout is not None
        for line in launcher.stdout:
            if line.startswith("step 3 "):
                break
        (second,) = (
            child
            for child in psutil.Process(launcher.pid).children(recursive=True)
            if child.environ().get("RANK") == "1" and str(PROGRAM) in child.cmdline()
        )
        second.kill()
        _, said = launcher.communicate(timeout=300)
    assert launcher.returncode != 0
    assert "rank      : 1" in said and "exitcode  : -9" in said
    lines = run(torchrun(folder, "killed"))
    assert lines[0].startswith("step 3 "), "it went on from the checkpoint of step 2"
    assert [line for line in lines if line.startswith("step 6 ")], "rank 0 reports"
    assert len([line for line in lines if line.startswith("curve")]) == 1, "and no other"
    assert weights(folder, "killed") == weights(folder, "alone")


@pytest.mark.kills
@pytest.mark.thorough
def test_a_rank_that_is_told_to_end_is_named_and_a_new_start_goes_on_from_the_checkpoint(
    folder: Path,
) -> None:
    """Here the training starts its ranks itself. A scheduler or an administrator sends SIGTERM."""
    command = [sys.executable, str(PROGRAM), str(folder), "told", "--smoke"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=importing()
    ) as program:
        assert program.stdout is not None
        assert any(line.startswith("step 3 ") for line in program.stdout)
        ranks = [
            child
            for child in psutil.Process(program.pid).children()
            if "multiprocessing.spawn" in " ".join(child.cmdline())
        ]
        ranks[-1].terminate()
        _, said = program.communicate(timeout=300)
    assert program.returncode == 1
    assert re.search(r"^[\w.]*RankError: rank [01] ended with exit code 143 \(SIGTERM\)$", said, re.M), said
    lines = run([sys.executable, str(PROGRAM), str(folder), "told", "--smoke"])
    assert lines[0].startswith("step 3 "), "it went on from the checkpoint of step 2"
    assert weights(folder, "told") == weights(folder, "alone")
