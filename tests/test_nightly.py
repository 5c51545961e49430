"""The night's run goes on after a failure, and its table and its exit code say what failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.nightly import Outcome, table

MAKEFILE = """
first:
\t@echo all is well
second:
\t@echo it breaks >&2; exit 3
third:
\t@echo it was reached
"""


def night(folder: Path, repository: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    (folder / "Makefile").write_text(MAKEFILE)
    command = [sys.executable, "-m", "tests.support.nightly", "logs", *targets]
    environment = {**os.environ, "PYTHONPATH": str(repository)}
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
