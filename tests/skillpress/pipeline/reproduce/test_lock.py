import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from skillpress.pipeline.reproduce.lock import LockTimeoutError, exclusive, stage_lock, workspace_lock

HOLD = (
    "import sys, time; from pathlib import Path; from skillpress.pipeline.reproduce.lock import exclusive\n"
    "with exclusive(Path(sys.argv[1]), 'it'): print('held', flush=True); time.sleep(float(sys.argv[2]))"
)


def holder(lock: Path, seconds: float, repository: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock), str(seconds)],
        cwd=repository,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.kills
def test_the_second_gives_up_after_a_set_time_and_says_who_holds_it(tmp_path: Path, repository: Path) -> None:
    lock = workspace_lock(tmp_path)
    first = holder(lock, 60, repository)
    try:
        with (
            pytest.raises(
                LockTimeoutError, match=rf"the farm is still in use by process {first.pid} \(since 20"
            ),
            exclusive(lock, "the farm", wait_seconds=0),
        ):
            pass
    finally:
        first.kill()
        first.wait()


def test_the_second_waits_says_for_whom_and_gets_it(tmp_path: Path, repository: Path, capsys) -> None:
    lock = workspace_lock(tmp_path)
    first = holder(lock, 1, repository)
    with exclusive(lock, "the farm", wait_seconds=60):
        assert first.wait() == 0
    assert f"waiting for process {first.pid} (since 20" in capsys.readouterr().err


@pytest.mark.kills
def test_a_lock_whose_holder_was_killed_is_free(tmp_path: Path, repository: Path) -> None:
    lock = workspace_lock(tmp_path)
    first = holder(lock, 60, repository)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    with exclusive(lock, "the farm", wait_seconds=0):
        pass


HAND_ON = """
import subprocess, sys
from pathlib import Path
from skillpress.pipeline.reproduce.lock import exclusive
with exclusive(Path(sys.argv[1]), "it") as lock:
    heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.kills
def test_a_lock_that_was_handed_on_is_free_when_the_heir_has_ended_too(
    tmp_path: Path, repository: Path
) -> None:
    lock = stage_lock("train_policy", tmp_path)
    first = subprocess.Popen(
        [sys.executable, "-c", HAND_ON, str(lock)],
        cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    (heir,) = psutil.Process(first.pid).children()
    heir.suspend()  # it still has work to do
    first.kill()
    first.wait()
    with (
        pytest.raises(LockTimeoutError, match=f"still in use by process {first.pid}"),
        exclusive(lock, "it", wait_seconds=0),
    ):
        pass
    heir.resume()  # its pipe is closed, so it ends
    with exclusive(lock, "it", wait_seconds=60):
        pass
