"""A drafted table names what the log holds, works right away, and is YAML that one edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillpress.environments.calls.rules import RuleProjection, read_rules
from skillpress.environments.calls.steps import TraceStep
from skillpress.logs.draft_table import table_of
from skillpress.logs.drafting import Draft
from skillpress.logs.trace import Trace

EDITS = [
    {"command": "view", "path": "/a.py"},
    {"command": "create", "path": "/b.py", "file_text": "x"},
    {"command": "str_replace", "path": "/a.py", "old_str": "x", "new_str": "y"},
]
LINES = ["cd /r && ls | head -3", "python -m pytest -q", "grep -n 'a|b' x; cat x", "", "ls -la"]


def call(tool: str, **arguments: Any) -> TraceStep:
    return TraceStep(tool, json.dumps(arguments))


def drafted(*steps: TraceStep, times: int = 1) -> str:
    draft = Draft()
    for _ in range(times):
        draft.add(Trace("", steps))
    return table_of(draft, "a log")


def rules_of(text: str, folder: Path) -> RuleProjection:
    (folder / "drafted.yaml").write_text(text, encoding="utf-8")
    return read_rules(folder / "drafted.yaml")


def test_a_shells_commands_an_editors_kinds_and_other_tools_are_named(tmp_path: Path) -> None:
    steps = [call("bash", command=line) for line in LINES]
    steps += [call("edit", **arguments) for arguments in EDITS] + [call("submit")]
    text = drafted(*steps, times=6)
    assert rules_of(text, tmp_path)(steps) == [
        ("ls", "head"), ("pytest",), ("grep", "cat"), ("bash",), ("ls",),
        ("view",), ("create",), ("str_replace",), ("submit",),
    ]  # fmt: skip
    assert "shell:\n  bash: command\n" in text and "It gives 100.0% of the steps a skill." in text
    assert "skill: ls}  # 12" in text and "# bash: 30 calls run 36 commands" in text
    assert "- {tool: bash, skill: bash}  # others: no command 6" in text


def test_what_a_value_decides_makes_a_kind_and_a_value_alone_does_not(tmp_path: Path) -> None:
    by_shape = [call("act", what="open", x=1), call("act", what="say", text="hi")]
    text = drafted(*by_shape, times=10)
    assert rules_of(text, tmp_path)(by_shape) == [("open",), ("say",)]
    alike = [call("search", text="gcd"), call("search", text="tests")]
    assert rules_of(drafted(*alike, times=10), tmp_path)(alike) == [("search",)] * 2
    assert "argument" not in drafted(*by_shape, times=4).split("rules:")[1], "eight calls divide nothing"


@pytest.mark.parametrize("argument", ["command", "cmd"])
def test_a_shell_is_known_by_its_name_or_by_what_it_runs(argument: str, tmp_path: Path) -> None:
    steps = [call("execute", **{argument: line}) for line in ("ls -l", "git status", "frobnicate")]
    text = drafted(*steps, times=2)
    assert f"shell:\n  execute: {argument}\n" in text
    assert rules_of(text, tmp_path)(steps) == [("ls",), ("git",), ("frobnicate",)]
    assert "shell:" not in drafted(*[call("ask", input=f"why {n}") for n in range(9)])
    words = TraceStep("shell", ["bash", "-lc", "ls | wc"])
    assert rules_of(drafted(words, words), tmp_path)([words]) == [("ls", "wc")]


def test_a_log_without_tools_is_named_by_first_words(tmp_path: Path) -> None:
    steps = [
        TraceStep(None, text) for text in ("go to desk 1", "look", "LOOK", "take it", "[say] hi", "on 3")
    ]
    text = drafted(*steps)
    assert rules_of(text, tmp_path)(steps) == [("go",), ("look",), ("look",), ("take",), ("say",), ("on",)]
    assert "- [look, look]  # 2" in text and "- ['go *', go]  # 1" in text


def test_any_name_makes_a_table_that_can_be_read(tmp_path: Path) -> None:
    odd = ["a*b[c]?", "yes", "it's: #1", "ключ\n2", "x" * 300, "mcp__files__read", "{", "- a"]
    steps = [call(name, path=str(number)) for number, name in enumerate(odd)]
    labels = rules_of(drafted(*steps), tmp_path)(steps)
    assert all(len(found) == 1 for found in labels) and len(set(labels)) == len(odd)


def test_steps_without_a_name_are_counted_in_the_heading() -> None:
    text = drafted(call("a"), TraceStep("", "{}"), TraceStep(None, "So it is."))
    assert "It gives 33.3% of the steps a skill." in text
    assert "1 steps are words" in text and "1 calls name no tool" in text
