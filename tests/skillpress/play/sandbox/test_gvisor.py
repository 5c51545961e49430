"""Programs on gVisor's kernel: files, limits that the watchdog keeps, and errors without gVisor."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from skillpress.play.sandbox import SandboxUnavailableError
from skillpress.play.sandbox.gvisor import probe, start_in_gvisor
from skillpress.play.sandbox.isolation import Inside
from tests.support.play.attacking import ROOT, gone
from tests.support.play.isolated import IsolatedSnippets
from tests.support.play.ordinary_user import said_by_nobody

needs_runsc = pytest.mark.skipif(shutil.which("runsc") is None, reason="gVisor's runsc is not on PATH")


def test_without_runsc_the_error_names_it_and_the_other_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailableError, match=r"no runsc on PATH.*or choose walls: bubblewrap"):
        probe()


def test_a_runsc_that_cannot_start_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("runsc").write_text("#!/bin/sh\necho cannot clone >&2\nexit 128\n")
    tmp_path.joinpath("runsc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailableError, match=r"gVisor cannot run a program here \(cannot clone\)"):
        probe()


def test_arguments_of_bwrap_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gVisor reads no arguments for bwrap"):
        start_in_gvisor(["true"], Inside("/tmp", 1, ip_sockets=False, mounts=["--tmpfs", "/x"]), tmp_path)


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
        from skillpress.play.sandbox import Limits
        from tests.support.play.isolated import IsolatedSnippets
        with IsolatedSnippets(Limits(memory_mb=64), "gvisor") as program:
            print(program.execute("6 * 7").result)
            print(program.execute("import time; held = b'x' * (128 << 20); time.sleep(99)").error.split()[-1])
    """
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    assert said_by_nobody(python, code, [str(ROOT), packages]) == ["42", "counted."]
