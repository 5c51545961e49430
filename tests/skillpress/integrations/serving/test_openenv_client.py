"""The ``openenv`` package's own client and validator accept our server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.integrations.served import served
from tests.support.programs import PROGRAMS, ROOT

CLIENT = ROOT / ".venv-openenv" / "bin"
PROGRAM = PROGRAMS / "openenv_client_program.py"

pytestmark = pytest.mark.skipif(
    not (CLIENT.parent / ".installed").exists(), reason="needs OpenEnv's client: make openenv"
)


def run(*command: str | Path) -> str:
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_its_client_plays_here() -> None:
    with served() as door:
        found = json.loads(run(CLIENT / "python", PROGRAM, door.url).splitlines()[-1])
    generic, typed = found["generic"], found["typed"]
    assert generic["first"] == generic["again"] == "Target: 6. Numbers: 1 2 3"
    assert generic["rewards"] == [0.0, 10.0]
    assert generic["state"]["episode_id"] == "mine" and generic["state"]["step_count"] == 2
    assert ["EXECUTION_ERROR" in generic["errors"][0], "VALIDATION_ERROR" in generic["errors"][1]] == [
        True,
        True,
    ]
    assert typed == {
        "texts": ["Numbers: 3 3", "Numbers: 3 28 80"], "won": True, "done": True, "steps": 2
    }  # fmt: skip


def test_its_validator_finds_nothing_missing() -> None:
    with served() as door:
        said = run(CLIENT / "openenv", "validate", "--url", door.url)
    assert "Verdict: PASS" in said and "FAIL" not in said
