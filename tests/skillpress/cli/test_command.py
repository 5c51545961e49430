"""The console command: help comes quickly, mistakes are named exactly, and the doctor lists findings."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from skillpress.cli import doctor
from skillpress.cli.command import COMMANDS, main, usage
from skillpress.cli.doctor import Finding
from skillpress.core.registry import ENGINES
from skillpress.pipeline import exit_codes


def test_the_help_names_every_command_and_imports_none_of_them(repository: Path) -> None:
    program = (
        "import sys; from skillpress.cli.command import main; code = main(['--help']);"
        "heavy = {'torch', 'polars', 'pydantic', 'dvc', 'mlflow', 'httpx'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert all(f"  {name} " in told.stdout for name in COMMANDS)


def test_every_command_has_a_module(repository: Path) -> None:
    for command in COMMANDS.values():
        spec = find_spec(command.module)
        assert spec is not None and spec.origin is not None
        assert "def main(arguments: Sequence[str] | None = None) -> int:" in Path(spec.origin).read_text()


def test_without_a_command_the_help_is_printed_and_the_exit_code_is_a_mistakes(capsys) -> None:
    assert main([]) == exit_codes.USER_ERROR
    assert capsys.readouterr().out == usage() + "\n"


@pytest.mark.parametrize(
    ("words", "unbuffered"), [(["--help"], ""), (["--help"], "1"), (["tables", "--help"], "")]
)
def test_a_reader_that_has_read_enough_ends_a_command_without_a_traceback(
    words: list[str], unbuffered: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from skillpress.cli.command import enter; enter()", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, env=environment, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (exit_codes.PIPE_CLOSED, "")


def test_an_unknown_command_is_refused_with_those_there_are(capsys) -> None:
    assert main(["trian"]) == exit_codes.USER_ERROR
    assert "no command 'trian'; the commands are init, check, run, evaluate" in capsys.readouterr().err
    assert main(["evalaute"]) == exit_codes.USER_ERROR
    assert "did you mean 'evaluate'?" in capsys.readouterr().err


def test_a_users_mistake_is_one_line(tmp_path: Path, capsys) -> None:
    missing = tmp_path / "nothing.yaml"
    assert main(["run", "--dry-run", "--params", str(missing)]) == exit_codes.USER_ERROR
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == exit_codes.USER_ERROR
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert str(missing) in lines[0] and "must be an evaluation's folder" in lines[1]


def test_the_doctor_ends_with_a_mistakes_code_only_where_the_default_experiment_lacks_something(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    for finding, code in (
        (Finding("git", False, "missing: apt-get install git", needed=True), exit_codes.USER_ERROR),
        (Finding("vllm", False, "missing"), 0),
        (Finding("git", True, "/usr/bin/git", needed=True), 0),
    ):
        monkeypatch.setattr(doctor, "findings", lambda found=finding: iter([("Section", [found])]))
        assert doctor.main([]) == code
        said = capsys.readouterr()
        assert finding.detail in said.out
        assert ("missing for the default experiment: git" in said.err) == bool(code)


def test_the_doctor_looks_for_programs_where_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [found.there for found in doctor.programs()] == [False, False, False]
    for name in ("git", "make", "cc"):
        (tmp_path / name).touch(mode=0o755)
    assert [found.detail for found in doctor.programs()] == [
        str(tmp_path / name) for name in ("git", "make", "cc")
    ]


def test_a_bubblewrap_that_cannot_start_a_sandbox_is_not_called_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho no permissions to create a new namespace >&2; exit 1\n")
    program.chmod(0o755)
    found = doctor.sandbox()
    assert not found.there and "no permissions to create a new namespace" in found.detail


def test_a_gvisor_that_is_absent_or_runs_nothing_is_not_called_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    absent = doctor.gvisor()
    assert not absent.there and "runsc was not found on PATH" in absent.detail
    (tmp_path / "runsc").write_text("#!/bin/sh\necho it cannot >&2\nexit 1\n")
    (tmp_path / "runsc").chmod(0o755)
    broken = doctor.gvisor()
    assert not broken.there and "gVisor cannot run anything here (it cannot)" in broken.detail


def test_packages_are_told_with_their_versions_and_how_to_get_those_that_are_missing() -> None:
    numpy, nothing = doctor.packages(["numpy", "no-such-package"], remedy="pip install it")
    assert numpy.there and numpy.detail[0].isdigit()
    assert not nothing.there and nothing.detail == "missing: pip install it"


def test_an_engine_whose_package_is_missing_is_not_called_there() -> None:
    found = {name: doctor.engine(name) for name in ENGINES}
    assert found["local"].there and found["local"].needed
    assert found["server"].there and "serve-model" in found["server"].detail
    assert found["vllm"].there == (find_spec("vllm") is not None)
    assert found["vllm"].there or found["vllm"].detail.startswith("missing: vllm; see the extras below")
