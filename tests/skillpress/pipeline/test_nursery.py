"""Forked commands do what the same command does in a process of its own, and end with who asked for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from skillpress.pipeline import nursery as module
from skillpress.pipeline.nursery import VARIABLE, command, forked, nursery

pytestmark = pytest.mark.heavy

PROGRAM = """
import json, os, sys, time
from skillpress.pipeline.nursery import forked
if sys.argv[1] == "say":
    word, read = os.environ["WORD"], sys.stdin.read()
    print(json.dumps([os.getcwd(), sys.argv[2:], word, read, __name__, sys.path[0]]))
elif sys.argv[1] == "once":
    print(forked("program", ["once"]), os.getppid())
elif sys.argv[1] == "fail":
    raise SystemExit(int(sys.argv[2]))
elif sys.argv[1] == "raise":
    raise ValueError("wrong")
else:
    try:
        print(os.getpid(), flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted")
        raise SystemExit(130)
"""


@pytest.fixture(scope="module", autouse=True)
def forking() -> Iterator[None]:
    with nursery(libraries=["psutil", "a_library_that_is_not_there"]) as on:
        assert on
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def started(folder: Path, *arguments: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("program", *arguments), cwd=folder, text=True, stdout=subprocess.PIPE,
        env=os.environ | {"WORD": "a word"}, **options,
    )  # fmt: skip


def test_a_forked_command_has_the_folder_arguments_environment_and_files_of_who_asked(folder: Path) -> None:
    def said(how: list[str]) -> list[object]:
        done = subprocess.run(
            how, cwd=folder, input="read", text=True, capture_output=True, env=os.environ | {"WORD": "a word"}
        )
        return json.loads(done.stdout)

    here = [sys.executable, "-m", "program", "say", "x", "y"]
    assert command("program", "say", "x", "y") != here
    expected = [str(folder), ["x", "y"], "a word", "read", "__main__", str(folder)]
    assert said(command("program", "say", "x", "y")) == said(here) == expected


def test_a_forked_command_has_the_code_of_its_folder_as_it_is_then(folder: Path) -> None:
    (folder / "program.py").write_text("print('first')")
    assert started(folder).communicate()[0] == "first\n"
    (folder / "program.py").write_text("print('second one')")
    assert started(folder).communicate()[0] == "second one\n"


def test_a_forked_command_does_not_ask_again(folder: Path) -> None:
    said, parent = started(folder, "once").communicate()[0].split()
    assert said == "None"
    assert psutil.Process(int(parent)).ppid() == os.getpid()  # it is a child of the process that forks


@pytest.mark.parametrize("code", [0, 2, 130])
def test_the_exit_code_is_the_childs(folder: Path, code: int) -> None:
    process = started(folder, "fail", str(code))
    process.communicate()
    assert process.returncode == code


def test_an_exception_is_shown_and_fails(folder: Path) -> None:
    process = started(folder, "raise", stderr=subprocess.PIPE)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert errors.endswith("ValueError: wrong\n")


def waiting(folder: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
    process = started(folder, "wait")
    assert process.stdout is not None
    return process, psutil.Process(int(process.stdout.readline()))


@pytest.mark.kills
def test_kill_9_of_a_command_ends_its_child(folder: Path) -> None:
    process, child = waiting(folder)
    process.kill()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    process.communicate()


@pytest.mark.kills
def test_ctrl_c_reaches_the_child_which_decides(folder: Path) -> None:
    process, _ = waiting(folder)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert process.returncode == 130


@pytest.mark.kills
def test_a_child_that_was_killed_gives_the_code_that_a_shell_gives(folder: Path) -> None:
    process, child = waiting(folder)
    child.kill()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL


def test_without_the_variable_and_without_an_answer_nothing_is_forked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/nursery")
    assert forked("program", []) is None
    monkeypatch.delenv(VARIABLE)
    assert forked("program", []) is None
    assert command("program", "x") == [sys.executable, "-m", "program", "x"]


def test_a_machine_with_a_gpu_forks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(module, "DEVICES", tmp_path)
    with nursery() as on:
        assert not on


def test_a_process_that_does_not_end_is_killed_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_SECONDS", 0.2)
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.PIPE
    ) as server:
        module._end(server)
        assert server.returncode == -signal.SIGKILL
