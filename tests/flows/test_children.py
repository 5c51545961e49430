import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from flows import children
from flows.children import children_stopped

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.mark.kills
def test_what_was_started_in_the_block_ends_with_it_and_what_was_there_before_stays() -> None:
    before = subprocess.Popen(SLEEP)
    there = psutil.Process().children(recursive=True)  # other tests of this process may have left some
    try:
        with pytest.raises(TimeoutError), children_stopped():
            inside = subprocess.Popen(["sh", "-c", "sleep 600 & echo started; wait"], stdout=subprocess.PIPE)
            assert inside.stdout is not None
            assert inside.stdout.readline() == b"started\n"
            raise TimeoutError
        inside.wait(60)
        assert psutil.Process().children(recursive=True) == there
    finally:
        before.kill()
        before.wait()


@pytest.mark.kills
def test_who_waits_for_a_process_that_is_stopped_is_told_so() -> None:
    """Otherwise an experiment that was stopped would count as done."""
    codes: list[int] = []
    with pytest.raises(TimeoutError), children_stopped():
        process = subprocess.Popen(SLEEP)
        waiting = threading.Thread(target=lambda: codes.append(process.wait(60)))
        waiting.start()
        time.sleep(0.2)  # it looks every 50 ms, and would come too late after the stop
        raise TimeoutError
    waiting.join(60)
    assert codes == [-signal.SIGTERM]


@pytest.mark.kills
def test_what_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "GRACE_SECONDS", 0.5)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"
    with pytest.raises(TimeoutError), children_stopped():
        process = subprocess.Popen(
            [sys.executable, "-c", deaf], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        raise TimeoutError
    assert process.wait(60) == -signal.SIGKILL


@pytest.mark.kills
def test_a_block_that_ends_well_leaves_its_processes_alone() -> None:
    with children_stopped():
        process = subprocess.Popen(SLEEP)
    assert process.poll() is None
    process.kill()
    process.wait()
