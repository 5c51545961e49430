"""A table of rules names steps as it says, and our environments' tables agree with the environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.doors.traces.rules import RuleProjection, find_rules, read_rules
from skillpress.doors.traces.trace import TracesError, TraceStep, acted
from skillpress.environments import bundle
from skillpress.environments.alfworld.actions import NOTHING_HAPPENS

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
        ("- [a, b]", "it must hold rules"),
        ("rules: []", "it must hold rules"),
        ("rules: [[a, b]]\nmore: 1", "it must hold rules"),
        ("rules: [[a, b]]\nshell: bash", "shell: it must name each tool and the argument"),
        ("rules: [[a, b]]\nshell: {bash: 1}", "shell: it must name each tool and the argument"),
        ("rules: [[a, b, c]]", r"rule 1: \['a', 'b', 'c'\] is neither"),
        ("rules: [[a, b], {tool: x}]", "rule 2: .* is neither .*tool, words, finds"),
        ("rules: [{tool: x, skil: y}]", "rule 1: .* is neither"),
        ("rules: [[1, b]]", "rule 1: words: 1 must be a text"),
        ("rules: [{finds: '(', skill: x}]", r"rule 1: finds: '\(' is not a regular expression"),
        ("rules: [{argument: a, skill: x}]", "there is no finds"),
        ("rules: [{until: x, skill: x}]", "there is no after"),
        ("rules: [{after: y, skill: x}]", "rule 1: after: no rule gives the skill 'y'"),
        ("rules: [[a, " + "x" * 81 + "]]", "more than 80 letters"),
    ],
)
def test_a_mistake_names_the_rule_and_what_would_be_right(table, text: str, said: str) -> None:
    with pytest.raises(TracesError, match=r"rules\.yaml: .*" + said):
        table(text)


def test_a_table_that_is_not_there_says_which_are() -> None:
    with pytest.raises(TracesError, match="alfworld, code_repair, notebook_qa, textworld_cooking"):
        find_rules("chess")


def played(actions: list[tuple[str, str | None]], observation: str = "") -> Trajectory:
    """An episode of (action, reason why it was refused)."""
    steps = tuple(
        Step((), (), (), "", action, NOTHING_HAPPENS if invalid else observation, invalid, ())
        for action, invalid in actions
    )
    return Trajectory("t", "g", 0, steps, True, True, False, "won", 0, 0)


def agree(environment: str, episode: Trajectory) -> None:
    """The table gives the environment's own skills."""
    projection = bundle(environment).projection
    steps = [acted(step.action, step.observation, step.invalid is not None) for step in episode.steps]
    task = Task("t", environment, 0, {})
    assert list(TABLES[environment](steps)) == list(projection(task, episode))


TABLES = {
    name: read_rules(find_rules(name))
    for name in ("alfworld", "code_repair", "notebook_qa", "textworld_cooking")
}
REFUSED = st.sampled_from([None, "not_admissible"])
VERBS = (
    "go to", "open", "close", "look", "examine", "take", "move", "put", "heat", "cool", "clean", "use",
    "inventory", "examine cookbook", "eat", "chop", "cook", "xyzzy",
)  # fmt: skip
PHRASES = st.tuples(st.sampled_from(VERBS), st.sampled_from(["", " desk 1", " apple from fridge", " meal"]))
COMMANDS = (
    "ls -la",
    "cat gcd.py",
    "sed -i s/a/b/ gcd.py",
    "python gcd.py",
    "view",
    "str_replace",
    "",
    "ED x",
    "make",
)
CALLS = st.tuples(st.sampled_from(["bash", "edit", "test", "submit", "other"]), st.sampled_from(COMMANDS))
CELLS = (
    "search('x')", "print(read('x'))", "submit_final_answer(1)", "notepad.plan('x')",
    "notepad.add(search('x'))", "x = 1", "print(\"compared:\", read('x'))", "  ", "",
)  # fmt: skip


@given(st.lists(st.tuples(PHRASES, REFUSED)))
@pytest.mark.parametrize("environment", ["alfworld", "textworld_cooking"])
def test_our_tables_of_words_are_the_environments_own(environment: str, phrases) -> None:
    agree(environment, played([
        (verb + what, refused if what else "not_admissible") for (verb, what), refused in phrases
    ]))  # fmt: skip


@given(st.lists(st.tuples(CALLS, REFUSED)))
def test_code_repairs_table_is_the_environments_own(calls) -> None:
    agree("code_repair", played([
        (json.dumps({"tool": tool, **({"command": command} if tool in ("bash", "edit") else {})}), refused)
        for (tool, command), refused in calls
    ]))  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(CELLS), REFUSED)))
def test_notebooks_table_is_the_environments_own(cells) -> None:
    agree("notebook_qa", played(cells))
