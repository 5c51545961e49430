"""What a launcher kills: its own programs with all that they have started, and no other process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from skillpress.rollouts.programs.launch import Commands, end_orphans
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.start import MARK, Start

NOBODY = 4_194_303
"""The number of no process: the kernel's largest is one less."""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    (tmp_path / "work").mkdir()
    return Start("a key", "http://127.0.0.1:9/e/a", {"id": "a"}, tmp_path / "work")


def test_the_number_of_an_ended_program_is_not_given_to_another_process_before_it_is_stopped(
    start: Start,
) -> None:
    """The verifier may work for minutes in between, and what is stopped is killed by its number."""
    over = threading.Event()
    running = Commands(["true"]).start(start, lambda ended: over.set())
    assert over.wait(60)
    number = running.pid
    assert psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    running.stop()
    assert not psutil.pid_exists(number)


@pytest.mark.parametrize(
    ("command", "why", "said"),
    [
        (["true"], None, ""),
        (["false"], "crashed", "exit code 1."),
        (["sh", "-c", "kill -11 $$"], "crashed", "exit code -11 (SIGSEGV)."),
        (["sh", "-c", "exit 139"], "crashed", "exit code 139 (SIGSEGV)."),
        (["sh", "-c", "kill -9 $$"], "lost", ""),
    ],
)
def test_an_end_is_told_in_words(start: Start, command: list[str], why: str | None, said: str) -> None:
    told: list[Ended] = []
    over = threading.Event()
    running = Commands(command).start(start, lambda ended: (told.append(ended), over.set()))
    assert over.wait(60)
    running.stop()
    assert [ended.why for ended in told] == [why]
    assert told[0].printed.endswith(said)


def test_what_a_program_leaves_is_ended_though_the_clock_was_set_back(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes then seem older than their program. The kernel's own ages do not follow the clock."""
    command = ["sh", "-c", "setsid sh -c 'echo $$ > left; exec sleep 3600'"]
    running = Commands(command).start(start, lambda ended: None)
    file, until = start.folder / "left", time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < until
        time.sleep(0.01)
    born = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: born(process) - 86_400)
    running.stop()
    assert ended(int(file.read_text()))


@contextmanager
def program_of(owner: int, namespace: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the mark of this endpoint."""
    variables = {**os.environ, MARK: f"{owner}:{namespace}:key"}
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield process
        process.kill()


def test_programs_of_an_endpoint_that_was_killed_are_ended_and_those_of_a_container_are_not() -> None:
    """Seen from here, a container's endpoint has another number than in its programs' mark."""
    here = os.stat("/proc/self/ns/pid").st_ino
    with (
        program_of(NOBODY, here) as orphan,
        program_of(NOBODY, here + 1) as container,
        program_of(os.getpid(), here) as ours,
    ):
        end_orphans()
        assert orphan.poll() is not None
        assert container.poll() is None and ours.poll() is None


def ended(number: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within this time; a zombie has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if psutil.Process(number).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False
