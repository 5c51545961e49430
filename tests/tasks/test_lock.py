import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.lock import LockTimeoutError, exclusive, workspace_lock

HOLD = (
    "import sys, time; from pathlib import Path; from tasks.lock import exclusive\n"
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


def test_a_lock_whose_holder_was_killed_is_free(tmp_path: Path, repository: Path) -> None:
    lock = workspace_lock(tmp_path)
    first = holder(lock, 60, repository)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    with exclusive(lock, "the farm", wait_seconds=0):
        pass
