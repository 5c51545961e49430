"""The estimated maximum memory of a batch, compared with the peak of real passes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.programs import PROGRAMS, importing
from tests.support.programs.memory_program import CASES

PROGRAM = PROGRAMS / "memory_program.py"

USUAL = {"fan-out", "activations", "imitation"}
"""Cases of every run. The others are marked thorough: each takes a CPU half a minute, bfloat16 minutes."""


@pytest.mark.parametrize(
    "case", [case if case in USUAL else pytest.param(case, marks=pytest.mark.thorough) for case in CASES]
)
def test_a_pass_takes_at_most_what_the_estimate_says_and_not_far_less(case: str) -> None:
    finished = subprocess.run(
        [sys.executable, str(PROGRAM), case],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=importing(),
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    found: dict[str, int] = json.loads(finished.stdout.splitlines()[-1])
    estimate = sum(size for part, size in found.items() if part.startswith("batch: "))
    assert found["measured"] <= estimate <= 3 * found["measured"]
