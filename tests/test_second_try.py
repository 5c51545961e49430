"""Which tests get a second try, and what the run says of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os, pathlib, time
import pytest

TRIES = pathlib.Path(__file__).with_name("tries")

def tries(name):
    with (TRIES.with_name(f"{name}.tries")).open("a") as file:
        file.write("x")
    return TRIES.with_name(f"{name}.tries").stat().st_size

@pytest.fixture(scope="module")
def served():
    return tries("served")

@pytest.mark.kills
def test_late(served):
    assert tries("late") == 2

@pytest.mark.kills
def test_of_a_fixture(served):
    assert tries("of_a_fixture") == 2 and served >= 2

@pytest.mark.kills
def test_never():
    tries("never")
    assert not "no process"

@pytest.mark.kills
@pytest.mark.timeout(5)
def test_hangs():
    time.sleep(0 if tries("hangs") == 2 else 60)

@pytest.mark.kills
def test_at_once():
    assert tries("at_once") == 1

def test_of_arithmetic():
    assert tries("of_arithmetic") == 2
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_only_a_test_that_kills_is_tried_again_and_it_is_named(
    workers: str, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "test_tried.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    kills: kills\n")
    plugins = ["-p", "tests.support.second_try", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", workers, *plugins],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    tried = {file.stem: file.stat().st_size for file in tmp_path.glob("*.tries")}
    assert tried == {
        "late": 2, "of_a_fixture": 2, "never": 2, "hangs": 2, "at_once": 1, "of_arithmetic": 1,
        "served": 3,
    }  # fmt: skip
    assert found.returncode == 1 and "2 failed, 4 passed" in found.stdout, found.stdout
    _, said = found.stdout.split("needed a second try")
    named = re.findall(
        r"^test_tried\.py::test_(\w+): (\w+) then; first it failed in call", said, re.MULTILINE
    )
    assert named == [("late", "passed"), ("of_a_fixture", "passed"), ("hangs", "passed"), ("never", "failed")]
