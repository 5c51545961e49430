"""How to attack a sandbox in each kind of isolation; imported by the test files of attacks."""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skillpress.rollouts.sandbox import Execution, Limits, Sandbox
from skillpress.rollouts.sandbox.isolation import Kind
from tests.support.rollouts.isolated import IsolatedSnippets

ROOT = Path(__file__).parents[3]
SECRET = "the-key-of-the-host"
SOON = Limits(seconds=3, grace_seconds=60)
"""A deadline that interruptible code survives, however busy the machine is."""
SHARP = Limits(seconds=0.5, grace_seconds=0.2)
"""A deadline for code that has to be killed."""
PATIENT_SECONDS = 60.0

SYSCALL = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    failed = libc.syscall(number, *map(ctypes.c_long, arguments)) < 0
    return errno.errorcode[ctypes.get_errno()] if failed else "done"
"""
FRAME = """
import json, os, stat, struct
open_ones = [n for n in range(256) if os.path.exists(f"/proc/self/fd/{n}")]
wire = next(n for n in open_ones if stat.S_ISSOCK(os.fstat(n).st_mode))
def frame(body):
    body = body.encode() if isinstance(body, str) else body
    os.write(wire, struct.pack(">I", len(body)) + body)
"""
NUMBER = """
import sys
frame_of_request = sys._getframe()
while "request" not in frame_of_request.f_locals: frame_of_request = frame_of_request.f_back
number = frame_of_request.f_locals["request"]["number"]
"""
"""Finds the host's name for the running request: code in the interpreter itself can look it up."""

x86_64 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="system calls have other numbers elsewhere"
)


COLUMNS = ("bubblewrap", "gVisor", "program", "program in gVisor")
"""Sandboxes and isolated programs by what isolates them."""
BACKEND = COLUMNS[0]
"""The column of the current test."""
NOT_HELD = {"gVisor": {"million_files"}, "program in gVisor": {"million_files", "setuid", "write_elsewhere"}}
"""Rows whose test fails, and must fail, in these columns."""
OF_PROGRAMS = {
    "signals_ignored", "signals_blocked", "interrupt_caught", "c_code_holds_the_interpreter", "stops_itself",
    "raises_its_limits", "child_answers_for_it", "memory_of_one_process", "memory_of_eight_processes",
    "memory_of_no_process", "memory_of_sockets", "memory_of_waiting_messages", "large_buffers", "full_disk",
    "one_large_file", "million_files", "write_elsewhere", "devices", "host_environment", "host_processes",
    "memory_of_others", "memory_opened_again", "loopback", "internet", "abstract_socket", "nested_namespaces",
    "mount", "kernel_interfaces", "system_calls_of_another_architecture", "setuid", "settings_of_the_kernel",
}  # fmt: skip
"""Rows that are tried against programs by the same test. The others have tests of their own
(``test_attacks_on_programs.py``) or attack what a program has not."""


@pytest.fixture(params=COLUMNS, autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try each attack in each isolation that has a column in the docs."""
    attack = request.node.originalname.removeprefix("test_attack_")
    if "program" in request.param and attack not in OF_PROGRAMS:
        pytest.skip("attacks.md says why, or a test of its own tries it")
    if "gVisor" in request.param and shutil.which("runsc") is None:
        pytest.skip("gVisor's runsc is not on PATH")
    monkeypatch.setattr(sys.modules[__name__], "BACKEND", request.param)
    if attack in NOT_HELD.get(request.param, ()):
        request.applymarker(pytest.mark.xfail(strict=True, reason="attacks.md says so"))


def start(limits: Limits | None = None, tools: Mapping[str, Any] | None = None) -> Any:
    """A sandbox, or what runs programs, behind the isolation of the current test."""
    if "program" in BACKEND:
        return IsolatedSnippets(limits, isolation())
    return Sandbox.start(limits, tools, isolation=isolation())


def isolation() -> Kind:
    """What isolates in the current test."""
    return "gvisor" if "gVisor" in BACKEND else "bubblewrap"


def attack(code: str, limits: Limits | None = None) -> Execution:
    """What the agent sees of one attack in a separate sandbox."""
    with start(limits) as sandbox:
        told: Execution = sandbox.execute(code)
        return told


def assert_ended(execution: Execution, *words: str) -> None:
    """The execution tells the agent that its state is lost, and why."""
    assert execution.error is not None
    assert "variables, files and processes are lost" in execution.error
    for word in words:
        assert word in execution.error


def assert_goes_on(sandbox: Sandbox) -> None:
    """The sandbox works as before."""
    assert sandbox.execute("6 * 7").result == "42"


def gone(pid: int) -> bool:
    """Whether a process has ended, within a minute."""
    until = time.monotonic() + PATIENT_SECONDS
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
