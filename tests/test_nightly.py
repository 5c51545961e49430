"""The night's run goes on after a failure, and its table and its exit code say what failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.audit import NOT_AUDITED
from tests.support.nightly import Outcome, table

MAKEFILE = """
first:
\t@echo all is well
second:
\t@echo it breaks >&2; exit 3
third:
\t@echo it was reached
audit:
\t@python -m tests.support.audit locks/run.txt locks/torch-cpu.txt
"""
PIP_AUDIT = """#!/bin/sh
echo "$@" > asked
cat answer
cat complaint >&2
exit $(cat code)
"""
KNOWN = [{"id": "CVE-2026-1", "fix_versions": ["1.1"], "aliases": []}]
UNREACHABLE = "ERROR:pip_audit._cli:Failed to connect to the vulnerability service"


def night(folder: Path, repository: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    (folder / "Makefile").write_text(MAKEFILE)
    command = [sys.executable, "-m", "tests.support.nightly", "logs", *targets]
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(repository), "PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_it_goes_on_after_a_failure_which_its_exit_code_and_its_table_tell(
    tmp_path: Path, repository: Path
) -> None:
    found = night(tmp_path, repository, "first", "second", "third")
    assert found.returncode == 1, found.stderr
    rows = [line.split() for line in found.stdout.splitlines()[-4:]]
    assert rows == [
        ["name", "result", "minutes", "log"],
        ["first", "passed", "0.0", "logs/first.log"],
        ["second", "failed", "(2)", "0.0", "logs/second.log"],
        ["third", "passed", "0.0", "logs/third.log"],
    ]
    assert "it breaks" in (tmp_path / "logs" / "second.log").read_text()
    assert night(tmp_path, repository, "first", "third").returncode == 0


def test_the_table_is_aligned_and_counts_minutes() -> None:
    outcomes = [Outcome("docs", 0, 90.0, Path("a.log")), Outcome("kill-test", -9, 6000.0, Path("b.log"))]
    assert table(outcomes).splitlines() == [
        "name       result       minutes  log",
        "docs       passed           1.5  a.log",
        "kill-test  failed (-9)    100.0  b.log",
    ]


@pytest.mark.parametrize(
    ("answer", "code", "result", "said"),
    [
        pytest.param(
            [("a", {"vulns": []}), ("b", {"vulns": []})], 0, "passed", "no known vulnerability in 2 packages",
            id="clean",
        ),
        pytest.param(
            [("a", {"vulns": KNOWN}), ("b", {"vulns": []})], 1, "failed (2)",
            "a 1.0: CVE-2026-1; mended in 1.1\n1 of 2 packages have known vulnerabilities", id="found",
        ),
        pytest.param(None, 1, NOT_AUDITED, f"{NOT_AUDITED} ({UNREACHABLE})", id="not reached"),
        pytest.param(
            [("a", {"vulns": []}), ("b", {"skip_reason": "Dependency not found"})], 0, NOT_AUDITED,
            f"{NOT_AUDITED} for 1 of 2 packages: b", id="reached in part",
        ),
    ],
)  # fmt: skip
def test_an_audit_passes_only_if_the_database_answered_for_every_package(
    tmp_path: Path,
    repository: Path,
    answer: list[tuple[str, dict[str, object]]] | None,
    code: int,
    result: str,
    said: str,
) -> None:
    """pip-audit ends with 1 in both of the middle cases, and with 0 if it skipped packages."""
    (tmp_path / "pip-audit").write_text(PIP_AUDIT)
    (tmp_path / "pip-audit").chmod(0o755)
    packages = [{"name": name, "version": "1.0", **about} for name, about in answer or []]
    (tmp_path / "answer").write_text("" if answer is None else json.dumps({"dependencies": packages}))
    (tmp_path / "complaint").write_text(f"{UNREACHABLE}\n" if answer is None else "")
    (tmp_path / "code").write_text(str(code))
    found = night(tmp_path, repository, "audit")
    assert found.stdout.splitlines()[-1].split("  ")[1].strip() == result
    assert said in (tmp_path / "logs" / "audit.log").read_text()
    assert found.returncode == (1 if result.startswith("failed") else 0)
    asked = (tmp_path / "asked").read_text().split()
    assert "locks/run.txt" in asked and "locks/torch-cpu.txt" not in asked
