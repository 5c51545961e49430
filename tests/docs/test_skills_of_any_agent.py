"""The example of docs/skills_of_any_agent.md, run unchanged from the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from skillpress.cli.command import main
from skillpress.skills.dictionary import load_dictionary

PAGE = (Path(__file__).parents[2] / "docs" / "skills_of_any_agent.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.split("\n## An example\n")[1].split("\n## ")[0]
PROGRAM, DRAFTED, RULES, COMMAND, SAID, ANSWERED = re.findall(
    r"^```\w+\n(.*?)^```$", EXAMPLE, re.MULTILINE | re.DOTALL
)
FIGURES = re.findall(
    r"^\| ([^|]+ → [^|]+) \| (\d+)% \| (\d+)% \| \+?(−?\d+) points \((−?\d+) to (−?\d+)\)",
    EXAMPLE,
    re.MULTILINE,
)


def run(line: str) -> int:
    name, *arguments = shlex.split(line)
    assert name == "skillpress"
    return main(arguments)


def test_the_example_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAM, "log.py", "exec"), {"__name__": "example"})
    assert [run(line) for line in DRAFTED.splitlines()] == [0, 0]
    drafted = Path("draft.yaml").read_text(encoding="utf-8")
    for name in ("ls", "grep", "pytest", "view", "create", "str_replace"):
        assert f"skill: {name}}}" in drafted
    Path("rules.yaml").write_text(RULES, encoding="utf-8")
    capsys.readouterr()
    assert run(COMMAND) == 0
    told = capsys.readouterr()
    assert told.err + told.out == SAID
    assert load_dictionary("skills/dictionary.json").alphabet == (
        "Inspect", "Write", "Edit", "Test", "Reproduce",
    )  # fmt: skip
    contrasts = pl.read_csv("skills/contrasts.csv")
    assert len(FIGURES) == 2
    for phrase, *numbers in FIGURES:
        row = contrasts.filter(pl.col("phrase") == phrase, pl.col("compared") == "successes - failures").row(
            0
        )
        assert [round(100 * share) for share in row[2:7]] == [int(n.replace("−", "-")) for n in numbers]
    versions = contrasts.filter(pl.col("compared") == "agent-1.1 - agent-1.0").sort("difference")
    assert versions.row(-1)[1] == FIGURES[0][0], "the routine that the text says grows"
    assert [round(100 * share) for share in versions.row(-1)[2:7]] == [61, 49, 12, 3, 21]
    assert run(f"{COMMAND} --between agent-1.0 agent-1.1") == 0
    assert capsys.readouterr().out.startswith(ANSWERED)


@pytest.mark.parametrize("command", ["skills", "rules"])
def test_every_option_is_on_the_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--output"}
    assert options and {option for option in options if option not in PAGE} == set()
