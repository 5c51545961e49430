"""DVC's output during a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from skillpress.pipeline.reproduce.messages import leave_out_routine
from dvc.cli import main
leave_out_routine()
raise SystemExit(main(["repro"]))
"""


def test_a_run_prints_its_stages_and_not_how_dvc_keeps_its_books(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages:\n  one:\n    cmd: echo hello\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(repository), "DVC_NO_ANALYTICS": "1"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "Running stage 'one'" in said and "hello" in said
    assert "lock file" not in said and "git add" not in said and "auto staging" not in said
