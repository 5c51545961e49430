"""A process ends with the one that started it, for each way of starting and each way of ending."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.rollouts.processes import assert_end

CHILD = """
import os, sys, time
from pathlib import Path
from skillpress.rollouts.workers.parent import end_with
time.sleep(float(sys.argv[3]))
end_with(int(sys.argv[2]))
Path(sys.argv[1] + ".tmp").write_text(str(os.getpid()))
os.replace(sys.argv[1] + ".tmp", sys.argv[1])
time.sleep(600)
"""
BLIND = """
import errno, os, sys
import skillpress.rollouts.workers.parent
sys.platform = "another"
def forbidden(pid):
    raise PermissionError(errno.EPERM, "not in this container")
os.pidfd_open = forbidden
"""
"""The beginning of a child for which neither the kernel's signal nor its process descriptor is available."""
PARENT = """
import os, subprocess, sys, time
program, file, late, shell = sys.argv[1:]
child = [sys.executable, "-c", program, file, str(os.getpid()), late]
if shell:
    child = ["sh", "-c", '"$0" "$@"; true', *child]
process = subprocess.Popen(child)
print(process.pid, flush=True)
time.sleep(600)
"""
RANK = """
import os, sys, time
from pathlib import Path
from torch.multiprocessing.spawn import start_processes
from skillpress.rollouts.workers.parent import end_with_parent

def rank(number, folder):
    end_with_parent()
    (Path(folder) / f"{number}.tmp").write_text(str(os.getpid()))
    (Path(folder) / f"{number}.tmp").rename(Path(folder) / f"{number}.pid")
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            pass

if __name__ == "__main__":
    start_processes(rank, (sys.argv[1],), nprocs=2, start_method="spawn")
"""


def start_parent(
    file: Path, repository: Path, late: float = 0, shell: bool = False, first: str = ""
) -> subprocess.Popen[str]:
    """A process whose child ends with it and writes its pid to ``file`` first."""
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, first + CHILD, str(file), str(late), "shell" if shell else ""],
        env={**os.environ, "PYTHONPATH": str(repository)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(file: Path) -> int:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(file.read_text())


@pytest.mark.kills
@pytest.mark.parametrize("shell", [False, True], ids=["directly", "through a shell"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_ends_with_its_ancestor_however_that_ends(
    how: signal.Signals, shell: bool, tmp_path: Path, repository: Path
) -> None:
    with start_parent(tmp_path / "child", repository, shell=shell) as parent:
        child = wait_for(tmp_path / "child")
        parent.send_signal(how)
    assert_end([child], seconds=20)


@pytest.mark.kills
@pytest.mark.parametrize("shell", [False, True], ids=["directly", "through a shell"])
def test_where_the_kernel_does_not_tell_a_thread_finds_out(
    shell: bool, tmp_path: Path, repository: Path
) -> None:
    """The parent remains a zombie meanwhile, since no process has waited for it."""
    parent = start_parent(tmp_path / "child", repository, shell=shell, first=BLIND)
    child = wait_for(tmp_path / "child")
    time.sleep(0.5)
    assert psutil.pid_exists(child)
    parent.kill()
    assert_end([child], seconds=20)
    parent.communicate()


@pytest.mark.kills
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the named ancestor is watched")
def test_a_process_ends_with_the_shell_in_between_too(tmp_path: Path, repository: Path) -> None:
    with start_parent(tmp_path / "child", repository, shell=True) as parent:
        child = wait_for(tmp_path / "child")
        assert parent.stdout is not None
        shell = int(parent.stdout.readline())
        assert shell != child
        os.kill(shell, signal.SIGKILL)
        assert_end([child], seconds=20)
        parent.kill()


@pytest.mark.kills
def test_a_process_whose_ancestor_ended_before_it_could_look_ends_at_once(
    tmp_path: Path, repository: Path
) -> None:
    with start_parent(tmp_path / "child", repository, late=2.0) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    assert_end([child], seconds=20)
    assert not (tmp_path / "child").exists(), "it went on after the check"


@pytest.mark.kills
def test_a_living_parent_is_left_alone(tmp_path: Path, repository: Path) -> None:
    with start_parent(tmp_path / "child", repository) as parent:
        child = wait_for(tmp_path / "child")
        time.sleep(0.5)
        assert psutil.pid_exists(child)
        parent.kill()
    assert_end([child], seconds=20)


@pytest.mark.kills
def test_a_rank_ends_with_the_training_process_whatever_it_catches(tmp_path: Path, repository: Path) -> None:
    """torch handles SIGINT, which does not end a rank inside a collective or a ``try``."""
    program = tmp_path / "ranks.py"
    program.write_text(RANK)
    with subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)], env={**os.environ, "PYTHONPATH": str(repository)}
    ) as parent:
        ranks = [wait_for(tmp_path / f"{number}.pid") for number in range(2)]
        parent.kill()
    assert_end([*ranks], seconds=20)
