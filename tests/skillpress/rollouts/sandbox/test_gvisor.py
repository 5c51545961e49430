"""Sandboxes and programs on gVisor's kernel: files, limits that the watchdog keeps, and errors without
gVisor."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest

from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.sandboxed import PooledEnvironments
from skillpress.rollouts.sandbox import (
    Limits,
    Sandbox,
    SandboxLostError,
    SandboxPool,
    SandboxUnavailableError,
)
from skillpress.rollouts.sandbox.gvisor import probe
from skillpress.rollouts.sandbox.spawner import spawner
from tests.support.rollouts.attacking import ROOT, gone
from tests.support.rollouts.held import held_descriptors
from tests.support.rollouts.isolated import IsolatedSnippets
from tests.support.rollouts.ordinary_user import said_by_nobody

needs_runsc = pytest.mark.skipif(shutil.which("runsc") is None, reason="gVisor's runsc is not on PATH")


def test_without_runsc_the_error_names_it_and_the_other_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for start in (
        probe,
        lambda: Sandbox.start(isolation="gvisor"),
        lambda: SandboxPool(isolation="gvisor"),
        lambda: Judge(1.0, "gvisor"),
        lambda: PooledEnvironments(pytest.fail, Limits(), 1, 1.0, isolation="gvisor"),
    ):
        with pytest.raises(
            SandboxUnavailableError, match=r"runsc was not found on PATH.*or choose isolation: bubblewrap"
        ):
            start()


def test_a_runsc_that_cannot_start_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("runsc").write_text("#!/bin/sh\necho cannot clone >&2\nexit 128\n")
    tmp_path.joinpath("runsc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailableError, match=r"gVisor cannot run anything here \(cannot clone\)"):
        probe()
    before = held_descriptors()
    with pytest.raises(SandboxUnavailableError, match=r"gVisor cannot run anything here \(cannot clone\)"):
        Sandbox.start(isolation="gvisor")
    assert held_descriptors() == before and list(spawner().folder().glob("isolation-*")) == []


@needs_runsc
def test_a_sandbox_has_a_kernel_of_its_own_and_the_same_inside() -> None:
    code = (
        "import os, sys\nos.environ.pop('PWD', None)\n"
        "[os.uname().release, os.getuid(), os.getpid(), sys.executable, dict(os.environ)]"
    )
    with Sandbox.start(isolation="gvisor") as sandbox, Sandbox.start() as other:
        release, *same = eval(sandbox.execute(code).result or "")
        host, *expected = eval(other.execute(code).result or "")
        assert release == "4.4.0" != host and same == expected
        assert sandbox.bash("echo gone > /dev/null; echo here > kept; cat kept").stdout == "here\n"
        folder = sandbox.snapshot()
        assert len(list(spawner().folder().glob("isolation-*"))) == 1
    with (
        SandboxPool(ready=1, isolation="gvisor") as pool,
        pool.sandbox({"double": lambda n: 2 * n}) as sandbox,
    ):
        sandbox.reset(folder)
        assert sandbox.execute("open('kept').read(), double(21), os").error
        assert sandbox.execute("open('kept').read(), double(21)").result == "('here\\n', 42)"
    assert list(spawner().folder().glob("isolation-*")) == []


@needs_runsc
def test_no_process_of_a_sandbox_outlives_its_end_and_a_killed_one_is_lost() -> None:
    with Sandbox.start(isolation="gvisor") as sandbox:
        sandbox.execute("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)")
        processes = psutil.Process(sandbox.pid).children(recursive=True)
    assert len(processes) > 5 and all(gone(process.pid) for process in processes)
    with Sandbox.start(isolation="gvisor") as sandbox:
        threading.Timer(0.5, os.kill, (sandbox.pid, signal.SIGKILL)).start()
        with pytest.raises(SandboxLostError):
            sandbox.execute("import time\ntime.sleep(1000)")


@needs_runsc
def test_programs_write_to_the_null_device() -> None:
    with IsolatedSnippets(None, "gvisor") as program:
        assert program.execute("open('/dev/null', 'w').write('12')").result == "2"


@needs_runsc
def test_the_kernel_is_gvisors_and_the_program_writes_into_its_folder_alone() -> None:
    code = "import os\nopen('x', 'w').close()\nos.uname().release == '4.4.0', os.path.exists('/etc/shadow')"
    with IsolatedSnippets(None, "gvisor") as program:
        assert program.execute(code).result == "(True, False)" != str((os.uname().release == "4.4.0", False))
        assert program.execute("import os\nos.listdir()").result == "['x']"


@needs_runsc
def test_output_and_errors_are_kept_in_their_order() -> None:
    code = "import sys\nfor n in range(3): print(n, flush=True); print(n, file=sys.stderr, flush=True)"
    with IsolatedSnippets(None, "gvisor") as program:
        assert program.execute(code).stdout.split() == list("001122")


@needs_runsc
def test_every_process_of_gvisor_ends_when_its_outermost_is_killed() -> None:
    with IsolatedSnippets(None, "gvisor") as program, program.started("import time; time.sleep(3613)"):
        me = psutil.Process()
        while len(found := [each for each in me.children(recursive=True) if each.name() != "setpriv"]) < 6:
            pass
        if os.geteuid() == 0:
            assert {process.uids().effective for process in found} == {65534}
        found[0].kill()
        assert all(gone(process.pid) for process in found)


@needs_runsc
@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests run as an ordinary user already")
def test_an_ordinary_user_has_the_same_isolation_and_the_same_watchdog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if not python.exists():
        pytest.skip(f"nobody may use this interpreter, and there is no {python}")
    code = f"""
        import os
        os.environ["PATH"] = {os.environ["PATH"]!r}
        from skillpress.rollouts.sandbox import Limits
        from tests.support.rollouts.isolated import IsolatedSnippets
        with IsolatedSnippets(Limits(memory_mb=64), "gvisor") as program:
            print(program.execute("6 * 7").result)
            print(program.execute("import time; held = b'x' * (128 << 20); time.sleep(99)").error.split()[-1])
    """
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    assert said_by_nobody(python, code, [str(ROOT), packages]) == ["42", "counted."]
