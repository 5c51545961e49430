"""Trainings in separate processes (``training_program.py``), some of them killed, and their outputs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file

from tests.support import nursery
from tests.support.programs import PROGRAMS, importing

PROGRAM = PROGRAMS / "training_program.py"


def run(folder: Path, output: str, prefix: Sequence[str] = ()) -> list[str]:
    options = (str(folder), output, "--smoke")
    if prefix:
        command = [*prefix, sys.executable, str(PROGRAM), *options]
        finished = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=300, env=importing()
        )
    else:
        finished = nursery.run(PROGRAM, *options)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout.splitlines()


def run_and_kill(folder: Path, output: str, after: int) -> None:
    """Start the training and ``kill -9`` it after it has reported step ``after``."""
    with nursery.killed(PROGRAM, str(folder), output, "--smoke", "--pause-after", str(after)) as lines:
        assert any(line.startswith(f"step {after} ") for line in lines), "it ended before"


def variant(folder: Path, to: Path, overlay: str) -> None:
    """A folder with the same tasks and start policy for a training with another overlay."""
    for made in ("train.parquet", "validation.parquet"):
        shutil.copy(folder / made, to)
    shutil.copytree(folder / "start", to / "start")
    (to / "overlay.yaml").write_text(overlay)


def same_weights(folder: Path, first: str, second: str) -> bool:
    files = [load_file(folder / name / "model.safetensors") for name in (first, second)]
    return all(bool((files[0][name] == files[1][name]).all()) for name in files[0])


def same_files(folder: Path, first: str, second: str) -> bool:
    """Whether both trainings left the same dictionaries and the same sample of episodes."""
    names = ("dictionaries-{}.json", "training-{}.parquet", "advantages-{}.parquet")
    return all(
        (folder / name.format(first)).read_bytes() == (folder / name.format(second)).read_bytes()
        for name in names
    )
