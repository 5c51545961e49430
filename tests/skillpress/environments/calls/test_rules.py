"""A table of rules names steps as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.environments.calls.rules import RuleProjection, RulesError, read_rules
from skillpress.environments.calls.steps import TraceStep

TABLE = r"""
rules:
  - [open *, Explore]
  - {tool: bash, finds: '^(cat|ls)\b', skill: Inspect}
  - {tool: edit, argument: command, finds: '^view$', skill: Inspect}
  - {tool: edit*, skill: Edit}
  - {tool: test, after: Edit, until: Undo, skill: Test}
  - {tool: test, skill: Reproduce}
  - {words: undo, skill: Undo}
  - [search gcd now, Explore]
"""


@pytest.fixture
def table(tmp_path: Path):
    """``table(text)``: the projection of a table."""

    def read(text: str) -> RuleProjection:
        (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
        return read_rules(tmp_path / "rules.yaml")

    return read


@pytest.mark.parametrize(
    ("step", "skill"),
    [
        (TraceStep(None, "Open  the box"), "Explore"),
        (TraceStep(None, "open"), None),
        (TraceStep("bash", '{"command": "ls -la"}'), "Inspect"),
        (TraceStep("bash", '{"command": "lsof"}'), None),
        (TraceStep("bash", "not JSON"), None),
        (TraceStep("edit", {"command": "view", "path": "x"}), "Inspect"),
        (TraceStep("edit", {"command": "insert", "path": "view"}), "Edit"),
        (TraceStep("edit_file", None), "Edit"),
        (TraceStep(None, "edit"), None),
        (TraceStep("search", {"text": "gcd now"}), "Explore"),
    ],
)
def test_the_first_rule_that_fits_names_the_step(table, step: TraceStep, skill: str | None) -> None:
    assert table(TABLE)([step]) == [() if skill is None else (skill,)]


def test_a_rule_may_ask_what_came_before(table) -> None:
    test, edit, undo = TraceStep("test", {}), TraceStep("edit", {}), TraceStep(None, "undo")
    refused = edit._replace(refused=True)
    labels = table(TABLE)([test, refused, test, edit, test, undo, test, edit, test])
    assert [label for (label,) in labels] == [
        "Reproduce", "Edit", "Reproduce", "Edit", "Test", "Undo", "Reproduce", "Edit", "Test"
    ]  # fmt: skip


def test_a_shells_step_has_a_skill_for_each_command_with_a_rule(table) -> None:
    split = (
        "shell: {'*sh': line}\n"
        + r"""
rules:
  - {tool: bash, finds: '^(ls|cat)\b', skill: Inspect}
  - {tool: bash, finds: '^sed\b', skill: Edit}
  - {tool: bash, finds: '^pytest\b', after: Edit, skill: Test}
  - {tool: bash, argument: line, finds: '^pytest', skill: Reproduce}
  - {words: bash make *, skill: Build}
"""
    )
    line = "cd /r && cat x | wc -l; python -m pytest && sed -i s/a/b/ x && pytest -q || make all"
    step = TraceStep("bash", {"line": line, "timeout": 9})
    assert table(split)([step, TraceStep("bash", "ls; pwd"), TraceStep("ls", {"line": "ls"})]) == [
        ("Inspect", "Reproduce", "Edit", "Test", "Build"), ("Inspect",), (),
    ]  # fmt: skip


def test_the_alphabet_is_the_tables_skills_in_its_order(table) -> None:
    projection = table(TABLE)
    assert projection.alphabet == ("Explore", "Inspect", "Edit", "Test", "Reproduce", "Undo")
    assert tuple(projection.settle({"Edit": 3})) == projection.alphabet


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- [a, b]", "not a table of rules"),
        ("rules: []", "not a table of rules"),
        ("rules: [[a, b]]\nmore: 1", "not a table of rules"),
        ("rules: [[a, b]]\nshell: bash", "shell: must map each tool to the argument"),
        ("rules: [[a, b]]\nshell: {bash: 1}", "shell: must map each tool to the argument"),
        ("rules: [[a, b, c]]", r"rule 1: \['a', 'b', 'c'\] is neither"),
        ("rules: [[a, b], {tool: x}]", "rule 2: .* is neither .*tool, words, finds"),
        ("rules: [{tool: x, skil: y}]", "rule 1: .* is neither"),
        ("rules: [[1, b]]", "rule 1: words: 1 must be a text"),
        ("rules: [{finds: '(', skill: x}]", r"rule 1: finds: '\(' is not a regular expression"),
        ("rules: [{argument: a, skill: x}]", "finds is missing"),
        ("rules: [{until: x, skill: x}]", "after is missing"),
        ("rules: [{after: y, skill: x}]", "rule 1: after: no rule gives the skill 'y'"),
        ("rules: [[a, " + "x" * 81 + "]]", "more than 80 letters"),
    ],
)
def test_a_mistake_names_the_rule_and_what_would_be_right(table, text: str, said: str) -> None:
    with pytest.raises(RulesError, match=r"rules\.yaml: .*" + said):
        table(text)
