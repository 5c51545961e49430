"""The skills of a program's responses, by the table of rules that its section names."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from skillpress.cli.rules import main as draft_rules
from skillpress.core.chat_messages import ToolCall
from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.calls.rules import read_rules
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.tasks import identities
from skillpress.environments.section import Projection
from skillpress.logs.fields import Wanted
from skillpress.logs.log import read_log
from skillpress.rollouts.programs.requests import Reply

RULES = r"""
shell: {bash: command}
rules:
  - {tool: bash, finds: '^(ls|cat)\b', skill: Look}
  - {tool: edit, argument: command, finds: '^view$', skill: Look}
  - {tool: edit, skill: Edit}
  - {tool: bash, finds: '^pytest\b', after: Edit, skill: Test}
  - {words: submit *, skill: Submit}
"""
STEP = Step((1,), (2,), (0.0,), "", "", "", None, ())
TASK = Task("a", "program", 0, {"id": "a"})
LOOK, TESTED = (
    ToolCall("bash", {"command": "cd src && ls | wc -l"}),
    ToolCall("bash", {"command": "pytest -q"}),
)
VIEW = ToolCall("edit", {"command": "view", "path": "a.py"})
INSERT = ToolCall("edit", {"command": "insert", "path": "a.py", "line": 3})
EPISODES = [
    (Reply("", (TESTED,)), Reply("first", (LOOK, VIEW)), Reply("", (INSERT, TESTED)), Reply("submit it")),
    (Reply("", (INSERT,)), Reply("", (ToolCall("bash", {"command": "cat a; pytest"}),)), Reply("well")),
]
SKILLS = [((), ("Look", "Look"), ("Edit", "Test"), ("Submit",)), (("Edit",), ("Look", "Test"), ())]


def episode(number: int, *replies: Reply, won: bool = True, invalid: str | None = None) -> Trajectory:
    steps = tuple(replace(STEP, action=reply.as_action(), invalid=invalid) for reply in replies)
    return Trajectory("a", f"g{number}", 0, steps, won, True, False, "won", 0, 0)


def section(folder: Path, table: str | None = RULES) -> ProgramParameters:
    """A section whose table of rules is in the folder."""
    tasks, rules = folder / "tasks.jsonl", folder / "rules.yaml"
    tasks.write_text('{"id": "a"}\n')
    if table is not None:
        rules.write_text(table)
    return ProgramParameters.model_validate(
        {"name": "program", "max_calls": 1, "run": "a:b", "tasks": str(tasks), "verify": "a:b",
         "rules": str(rules), "seconds": 1, "isolation": "none"}
    )  # fmt: skip


def projection(folder: Path, table: str | None = RULES) -> Projection:
    return section(folder, table).make_projection()


def test_each_step_has_the_skills_of_its_calls_and_of_their_commands_in_order(tmp_path: Path) -> None:
    project = projection(tmp_path)
    assert project.alphabet == ("Look", "Edit", "Test", "Submit")
    assert [project(TASK, episode(0, *replies)) for replies in EPISODES] == SKILLS


def test_a_step_whose_call_was_refused_is_no_step_that_others_come_after(tmp_path: Path) -> None:
    refused = episode(0, Reply("", (INSERT,)), Reply("", (TESTED,)), invalid="broken_call")
    assert projection(tmp_path)(TASK, refused) == (("Edit",), ())


def test_the_same_table_gives_a_rollout_file_the_same_skills_as_training(tmp_path: Path) -> None:
    file = tmp_path / "rollouts.parquet"
    write_rollouts(file, [episode(number, *replies) for number, replies in enumerate(EPISODES)])
    project = projection(tmp_path)
    log = read_log([file], read_rules(tmp_path / "rules.yaml"), Wanted(), most_bad=0.0)
    assert log.skills == [tuple(chain.from_iterable(project(TASK, each))) for each in read_rollouts(file)]
    assert [trace.steps for trace in log.traces] == [6, 3]  # one for each call, and one for words


def test_a_table_is_drafted_from_a_first_collection_and_names_its_calls(tmp_path: Path) -> None:
    file, drafted = tmp_path / "base.parquet", tmp_path / "drafted.yaml"
    write_rollouts(file, [episode(number, *EPISODES[number % 2]) for number in range(20)])
    assert draft_rules([str(file), "--output", str(drafted)]) == 0
    project = projection(tmp_path, drafted.read_text())
    assert {"ls", "cat", "pytest", "view", "insert"} <= set(project.alphabet)
    assert project(TASK, episode(0, *EPISODES[0])) == (
        ("pytest",), ("ls", "wc", "view"), ("insert", "pytest"), ()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, r"environment\.rules: .*rules\.yaml: no such file .* `skillpress rules ROLLOUTS"),
        ("rules: [[a, b, c]]", r"environment\.rules: .*rules\.yaml: rule 1: \['a', 'b', 'c'\] is neither"),
        ("rules: [", r"environment\.rules: .*rules\.yaml"),
    ],
)
def test_a_wrong_table_is_refused_before_any_stage_with_file_and_remedy(
    tmp_path: Path, table: str | None, said: str
) -> None:
    wrong = section(tmp_path, table)
    with pytest.raises(ParamsError, match=said):
        identities(wrong)
    with pytest.raises(ParamsError, match=said):
        wrong.make_projection()


def test_stages_depend_on_the_contents_of_tasks_and_table(tmp_path: Path) -> None:
    first = identities(section(tmp_path))
    second = identities(section(tmp_path, RULES.replace("Look", "See")))
    assert first.keys() == {"environment.tasks", "environment.rules"}
    assert first["environment.tasks"] == second["environment.tasks"]
    assert first["environment.rules"] != second["environment.rules"]
    wrong = section(tmp_path)
    Path(wrong.tasks).unlink()
    with pytest.raises(TaskError, match=r"environment\.tasks: .*tasks\.jsonl cannot be read"):
        identities(wrong)


def test_without_a_table_nothing_has_a_skill(tmp_path: Path) -> None:
    bare = section(tmp_path).model_copy(update={"rules": None})
    project = bare.make_projection()
    assert project.alphabet == () and project(TASK, episode(0, *EPISODES[1])) == ((), (), ())
