"""DVC's files after a kill in the middle of writing them, tested with DVC itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from skillpress.pipeline.reproduce.repair import (
    ACTIVE_FILE,
    CLOCK_SECONDS,
    LOCK_FILE,
    forget_ended_processes,
    set_broken_files_aside,
)

DVC_YAML = """\
stages:
  count:
    cmd: echo ran >> times && wc -c < input > count
    deps: [input]
    outs: [count]
  double:
    cmd: echo $((2 * $(cat count))) > double
    deps: [count]
    outs: [double]
"""


def dvc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dvc", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def hashes(lock: str) -> dict[str, list[tuple[str, str]]]:
    """Stage to path and hash of its inputs and outputs."""
    return {
        name: [(entry["path"], entry["md5"]) for kind in ("deps", "outs") for entry in stage[kind]]
        for name, stage in yaml.safe_load(lock)["stages"].items()
    }


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A small DVC project that was reproduced once, with the whole text of both files."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "dvc.yaml").write_text(DVC_YAML)
    (folder / "input").write_text("12345")
    dvc(folder, "init", "--no-scm")
    done = dvc(folder, "repro")
    assert done.returncode == 0, done.stderr
    active = '{"write": {"/x/y": {"pid": 4194304, "cmd": "dvc repro"}}, "read": {}}'
    return folder, (folder / LOCK_FILE).read_text(), active


def test_whole_files_are_left_alone(reproduced: tuple[Path, str, str]) -> None:
    folder, lock, active = reproduced
    (folder / LOCK_FILE).write_text(lock)
    (folder / ACTIVE_FILE).write_text(active)
    assert set_broken_files_aside(folder) == []
    assert ((folder / LOCK_FILE).read_text(), (folder / ACTIVE_FILE).read_text()) == (lock, active)


def test_wherever_the_writing_was_cut_dvc_reads_the_rest_or_has_none_and_no_stage_is_lost(
    reproduced: tuple[Path, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, lock, active = reproduced
    aside = 0
    for cut in (0, 1, 12, len(lock) // 3, len(lock) // 2, len(lock) - 2):
        (folder / LOCK_FILE).write_text(lock[:cut])
        (folder / ACTIVE_FILE).write_text(active[: cut * len(active) // len(lock)])
        aside += len(set_broken_files_aside(folder))
        done = dvc(folder, "repro")
        assert done.returncode == 0, f"cut at {cut}: {done.stderr}"
        assert (folder / "double").read_text() == "10\n"
        assert hashes((folder / LOCK_FILE).read_text()) == hashes(lock)
    assert aside > 6
    assert "half-written" in capsys.readouterr().err
    assert (folder / "times").read_text() == "ran\n", "what had run came from the cache"


def active(folder: Path, pid: int) -> None:
    """DVC's list with one process in it, which writes a stage's output and reads another's."""
    entry = {"pid": pid, "cmd": "skillpress/pipeline/reproduce/__main__.py"}
    (folder / ACTIVE_FILE).write_text(
        json.dumps({"write": {str(folder / "double"): entry}, "read": {str(folder / "input"): [entry]}})
    )


@pytest.mark.kills
def test_a_killed_process_that_nobody_has_collected_blocks_dvc_until_it_is_struck_off(
    reproduced: tuple[Path, str, str],
) -> None:
    folder, lock, _ = reproduced
    (folder / LOCK_FILE).write_text(lock)
    (folder / "input").write_text("123456")
    with subprocess.Popen(["sleep", "60"]) as killed:
        killed.kill()  # without waiting for it: it is a zombie until the end of this block
        active(folder, killed.pid)
        assert "is busy" in dvc(folder, "repro").stderr
        assert forget_ended_processes(folder) == 2
        done = dvc(folder, "repro")
    assert done.returncode == 0, done.stderr


def test_a_process_that_has_a_killed_ones_number_by_now_is_not_taken_for_it(
    reproduced: tuple[Path, str, str],
) -> None:
    folder, _, _ = reproduced
    active(folder, os.getpid())
    assert forget_ended_processes(folder) == 0, "this process may have written it"
    before = time.time() - 10 * CLOCK_SECONDS - 86_400
    os.utime(folder / ACTIVE_FILE, (before, before))
    assert forget_ended_processes(folder) == 2
    assert json.loads((folder / ACTIVE_FILE).read_text()) == {"write": {}, "read": {}}
