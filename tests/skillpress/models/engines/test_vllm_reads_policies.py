"""Saved policies in vLLM, which gets nothing but their folders (its CPU build: ``make test-vllm``)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.models.saved_policies import POLICIES, save_and_ask, smollm2
from tests.support.programs import PROGRAMS, importing

PROGRAM = PROGRAMS / "reading_with_vllm_program.py"
READ = ["scratch", "base", "chat", "domain tokens", "another base", "llama3"]

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make test-vllm"),
]


def test_vllm_says_the_same_of_saved_policies(tmp_path: Path) -> None:
    expected = {}
    for number, make in enumerate([*(POLICIES[name] for name in READ), smollm2]):
        folder = tmp_path / f"{number}"
        said = save_and_ask(make(folder), folder / "saved")
        expected[str(folder / "saved")] = {key: said[key] for key in ("prompt", "response")}
    command = [sys.executable, str(PROGRAM), *expected]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=importing())
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert json.loads(finished.stdout.splitlines()[-1]) == expected
