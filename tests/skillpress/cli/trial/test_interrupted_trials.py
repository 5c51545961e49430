"""A trial that is killed goes on where it was, and ends with the verdict of one that was not. Neither needs
torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli.command import main
from tests.support.rollouts.chat_server import chat_server
from tests.support.skills.folders import skill_folder
from tests.support.skills.trials import reads_skills, world

ROOT = Path(__file__).parents[4]
RUN = """
import sys


class OnlyTheBaseLayer:
    def find_spec(self, name, path=None, target=None):
        if name in {"torch", "transformers", "tokenizers", "numba", "scipy", "plotly", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, OnlyTheBaseLayer())
from skillpress.cli.command import main

sys.exit(main(sys.argv[1:]))
"""
SLOW = 0.15
MODEL = reads_skills("plover", 0.3)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def arguments(folder: Path, url: str) -> list[str]:
    named = ["trial", "--skills", str(folder / "skills"), "--model", url, *world(folder, 6)]
    return [*named, "--set", "sampling.slots=2"]


def begun(folder: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments(folder, url)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def result(folder: Path) -> dict[str, Any]:
    """The result of a trial without its seconds."""
    record: dict[str, Any] = json.loads((folder / "out" / "trial.json").read_text())
    del record["costs"]["seconds"], record["lines"], record["asked"]["parameters"]
    return record


@pytest.mark.kills
def test_a_killed_trial_continues_and_counts_no_episode_twice(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        skill_folder(folder / "skills", "find-things", "The word is plover.")
    with chat_server(lambda number: SLOW, manner=MODEL) as (url, heard):
        started.append(begun(killed, url))
        while len(heard.bodies) < 6:
            assert started[-1].poll() is None
            time.sleep(0.02)
        started[-1].send_signal(signal.SIGKILL)
        started[-1].wait()
        assert not (killed / "out" / "trial.json").exists()
        started.append(begun(killed, url))
        said, _ = started[-1].communicate(timeout=120)
        assert started[-1].returncode == 0 and " of 12 episodes are missing: they take about " in said
    assert len(heard.bodies) < 6 + 18, "finished episodes are not played again"
    with chat_server(manner=MODEL) as (url, _):
        assert main(arguments(whole, url)) == 0
    assert result(killed) == result(whole)
