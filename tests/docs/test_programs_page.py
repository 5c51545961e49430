"""The example of docs/programs.md, evaluated as the page says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.models.policy import save_policy
from tests.support.models.tiny import tiny_policy

PAGE = Path(__file__).parents[2] / "docs" / "programs.md"
FILES = {"python": "my_agent.py", "json": "tasks.jsonl", "yaml": "mine.yaml"}
RULES = "rules.yaml"


def test_the_pages_program_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = PAGE.read_text().partition("## What a program is given")[0]
    for language, code in re.findall(
        r"^```(python|json|yaml)\n(.*?)^```$", example, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / (RULES if code.startswith("rules:") else FILES[language])).write_text(code)
    command = re.search(r"^skillpress (evaluate .*)$", PAGE.read_text(), re.MULTILINE)
    assert command
    save_policy(tiny_policy(), tmp_path / "MODEL")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("OPENAI_BASE_URL", "http://vendor")
    small = ["--set", "policy.rendering=compact", "--set", "processes=1", "--output", "found"]
    assert main([*command[1].split(), *small]) == 0
    found = json.loads(Path("found/evaluation.json").read_text())
    assert "my_agent" in json.dumps(found)
    assert "OPENAI_BASE_URL" in found["versions"]["variables of vendors"]
    assert Path("found/page.html").exists() and Path("found/rollouts.parquet").exists()
