"""The example of docs/skills_of_any_agent.md, run unchanged from the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from skillpress.console.command import main
from skillpress.skills.dictionary import load_dictionary

PAGE = (Path(__file__).parents[2] / "docs" / "skills_of_any_agent.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.split("\n## An example\n")[1].split("\n## ")[0]
PROGRAM, RULES, COMMAND, SAID = re.findall(r"^```\w+\n(.*?)^```$", EXAMPLE, re.MULTILINE | re.DOTALL)


def test_the_example_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAM, "log.py", "exec"), {"__name__": "example"})
    Path("rules.yaml").write_text(RULES, encoding="utf-8")
    name, *arguments = shlex.split(COMMAND)
    assert name == "skillpress" and main(arguments) == 0
    told = capsys.readouterr()
    assert told.err + told.out == SAID
    assert load_dictionary("skills/dictionary.json").alphabet == ("Inspect", "Edit", "Test", "Reproduce")
    assert Path("skills/skills.html").is_file()


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skills", "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--output"}
    assert options and {option for option in options if option not in PAGE} == set()
