"""A command's exit code after a failed stage: the stage's own if it has a meaning, never DVC's 255."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skillpress.core.errors import ParamsError
from skillpress.pipeline import exit_codes
from skillpress.pipeline.reproduce.dvc_call import call_dvc, check_stages

PROGRAM = (
    "import sys; from skillpress.pipeline.reproduce.dvc_call import call_dvc; "
    "sys.exit(call_dvc(sys.argv[1:]))"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a stage for each exit code, and a stage that DVC itself cannot run."""
    ends = {code: f"  ends{code}:\n    cmd: exit {code}\n" for code in (0, 1, 2, 7, 130)}
    killed = "  killed:\n    cmd: kill -9 $$\n"
    lacks = "  lacks:\n    cmd: exit 0\n    deps: [nowhere]\n"
    (tmp_path / "dvc.yaml").write_text("stages:\n" + "".join(ends.values()) + killed + lacks)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ("ends0", 0),
        ("ends1", 1),
        ("ends2", exit_codes.USER_ERROR),
        ("ends7", 1),
        ("ends130", exit_codes.INTERRUPTED),
        ("killed", 1),
        ("lacks", 1),
    ],
)
def test_a_stages_code_is_the_commands(project: Path, stage: str, code: int, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(repository)!r}); {PROGRAM}", stage],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr


def test_a_misspelt_stage_is_refused_with_the_one_that_was_meant(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    for refuse in (call_dvc, check_stages):
        with pytest.raises(ParamsError, match=r"no stage .ends13.; there are ends0, .*mean .ends130."):
            refuse(["ends13"])


QUIET = """
from skillpress.pipeline.reproduce.dvc_call import leave_out_routine
from dvc.cli import main
leave_out_routine()
raise SystemExit(main(["repro"]))
"""


def test_a_run_prints_its_stages_and_not_how_dvc_keeps_its_books(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages:\n  one:\n    cmd: echo hello\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-c", QUIET], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(repository), "DVC_NO_ANALYTICS": "1"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "Running stage 'one'" in said and "hello" in said
    assert "lock file" not in said and "git add" not in said and "auto staging" not in said
