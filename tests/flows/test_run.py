"""``make run`` is the flow on a database of its own: its record is there, and its server ends with it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from flows.stages import RETRY_DELAYS_SECONDS
from skillpress.core.yaml_files import read_yaml_file
from skillpress.pipeline import exit_codes
from tests.support.clone import Clone
from tests.support.recorded import recorded

pytestmark = pytest.mark.slow

FIRST_IMPORT = "from __future__ import annotations\n"
FAILS_ONCE = """
import os, signal
from pathlib import Path
if not Path("failed").exists():
    Path("failed").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""What a stage does before its own work: as if the machine had no memory left, once."""


@pytest.fixture(scope="module")
def clone(reproduced: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return reproduced.copied(tmp_path_factory.mktemp("run"))


@pytest.mark.timeout(900)
def test_it_leaves_the_bytes_of_dvc_repro_and_a_record_without_any_server(clone: Clone) -> None:
    lock = clone.folder / "dvc.lock"
    assert clone.python("dvc", "repro").returncode == 0
    plain = lock.read_bytes()
    lock.unlink()
    run = clone.python("flows.run", http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    assert run.returncode == 0, run.stdout + run.stderr
    assert lock.read_bytes() == plain
    *_, report, effect = run.stdout.splitlines()
    assert report == f"report: {clone.folder / 'results' / 'report.html'}"
    assert effect.startswith("Success of one training on 32 held-out tasks: ")
    assert run.stdout.count("Running stage 'pin_inputs'") == 1
    assert recorded(clone, "SELECT name, state_name FROM flow_run") == [("default", "Completed")]
    stages = recorded(clone, "SELECT name, state_name, run_count FROM task_run")
    assert {name for name, _, _ in stages} == set(read_yaml_file(clone.folder / "dvc.yaml")["stages"])
    assert {(state, count) for _, state, count in stages} == {("Completed", 1)}
    assert set(recorded(clone, "SELECT key FROM artifact")) == {("stages",), ("metrics",), ("report",)}
    assert servers(clone) == []


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_a_run_that_is_killed_takes_its_server_along(clone: Clone) -> None:
    process = clone.start("flows.run")
    wait_for(lambda: bool(servers(clone)))
    process.kill()
    process.wait()
    wait_for(lambda: not servers(clone))


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_a_run_whose_server_is_killed_ends_with_a_line_that_says_so(clone: Clone) -> None:
    process = clone.start("flows.run")
    wait_for(lambda: bool(servers(clone)))
    servers(clone)[0].send_signal(signal.SIGKILL)
    said, _ = process.communicate(timeout=200)
    assert process.returncode in (exit_codes.RETRY, exit_codes.USER_ERROR)
    assert "Prefect's server of this run has ended with exit code -9" in said
    assert "run the same command again to go on" in said


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_a_stage_that_dies_is_said_and_tried_again_and_counted(clone: Clone) -> None:
    stage = clone.folder / "tasks" / "report.py"
    written = stage.read_text()
    assert FIRST_IMPORT in written
    stage.write_text(written.replace(FIRST_IMPORT, FIRST_IMPORT + FAILS_ONCE))
    run = clone.python("flows.run")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"tried again in {RETRY_DELAYS_SECONDS[0]:g} seconds" in run.stderr
    assert recorded(clone, "SELECT max(run_count) FROM task_run WHERE name = 'report'") == [(2,)]


def servers(clone: Clone) -> list[psutil.Process]:
    """The servers of the clone's runs."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = "flows.own_server" in process.cmdline() and process.cwd() == str(clone.folder)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(happened: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)
