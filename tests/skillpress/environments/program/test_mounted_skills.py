"""Skills of a program: where it finds them, that it cannot change them, and which it opened."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skillpress.core.chat_messages import ToolCall
from skillpress.core.trajectory import Task
from skillpress.environments.program.opened_skills import opened_skills
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.pipeline.identities import environment_data
from skillpress.rollouts.programs.mounting import PLACES, SELECTED
from skillpress.rollouts.programs.requests import Reply
from tests.support.rollouts import asking
from tests.support.rollouts.program_parts import one_of, printed, section_of
from tests.support.skills.folders import skill_folder

LOOKS = """
import json, os, pathlib, sys
found = sorted(str(path.parent) for path in pathlib.Path(".").rglob("SKILL.md"))
changed = 0
for name in found:
    for act in (lambda p: p.write_text("forged"), lambda p: p.unlink(), lambda p: p.with_name("new").touch()):
        try:
            act(pathlib.Path(name, "SKILL.md"))
            changed += 1
        except OSError:
            pass
print(json.dumps({"found": found, "changed": changed, "home": os.environ["HOME"], "cwd": os.getcwd(),
                  "told": sys.argv[1:], "task": os.environ["SKILLPRESS_TASK"]}))
"""


def section(skills: Path, **changes: Any) -> ProgramParameters:
    return section_of(**{"run": [sys.executable, "-c", LOOKS], "skills": str(skills), **changes})


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return skill_folder(skill_folder(tmp_path / "skills", "close-doors"), "find-things")


def test_an_isolated_program_finds_skills_in_every_place_and_changes_none(skills: Path) -> None:
    found = printed(section(skills))
    wanted = {f"{place.path}/{name}" for place in PLACES for name in ("close-doors", "find-things")}
    assert set(found["found"]) == wanted and found["changed"] == 0 and found["home"] == found["cwd"]


def test_an_agent_by_name_finds_skills_in_its_own_place_alone_and_its_task_may_name_them(
    skills: Path, tmp_path: Path
) -> None:
    run = [sys.executable, "-c", LOOKS, "{prompt}{skills}"]
    agent = {"tried": "x", "install": "x", "run": run, "skills": ".own/skills"}
    (tmp_path / "agent.yaml").write_text(json.dumps(agent))
    params = section(skills, run=None, agent=str(tmp_path / "agent.yaml"))
    found = printed(params, **{"prompt": "look at {skills}"})
    assert found["found"] == [".own/skills/close-doors", ".own/skills/find-things"]
    asked, _, _, *lines = found["told"][0].splitlines()
    assert asked == "look at {skills}"
    assert lines[0] == "- .own/skills/close-doors/SKILL.md: Use it for close-doors." and len(lines) == 2
    assert printed(params, **{"prompt": "look", SELECTED: []})["told"] == ["look"]


def test_a_program_without_isolation_finds_copies_in_the_places_of_a_project(skills: Path) -> None:
    found = printed(section(skills, isolation="none"))
    wanted = {
        f"{place.path}/{name}" for place in PLACES if place.project for name in ("close-doors", "find-things")
    }
    assert set(found["found"]) == wanted
    assert (skills / "find-things" / "SKILL.md").read_text().startswith("---"), "the original is unchanged"


@pytest.mark.parametrize("isolation", ["bubblewrap", "none"])
def test_a_task_may_choose_among_the_skills_and_its_program_is_not_told(isolation: str, skills: Path) -> None:
    found = printed(section(skills, isolation=isolation), **{SELECTED: ["find-things"]})
    assert {Path(name).name for name in found["found"]} == {"find-things"}
    assert json.loads(found["task"]) == {"id": "t"}
    assert printed(section(skills, isolation=isolation), **{SELECTED: []})["found"] == []


def test_a_function_has_no_folder_for_skills(skills: Path) -> None:
    with pytest.raises(ValidationError, match="copied only for commands, but run names the function"):
        section(skills, run=f"{asking.HERE}:walk", isolation="none")


def test_the_hashes_of_skills_are_inputs_of_the_experiment(skills: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "t"}\n')
    params = section(skills, tasks=str(tmp_path / "tasks.jsonl"))
    before = environment_data(params)
    (skills / "find-things" / "SKILL.md").write_text(
        "---\nname: find-things\ndescription: Other words.\n---\n"
    )
    after = environment_data(params)
    differing = [name for name in before if before[name] != after[name]]
    assert differing == ["environment.skills: find-things"]


NAMES = ("close-doors", "find-things")


def opened(tool: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    return opened_skills(
        [json.dumps({"content": "", "calls": [{"tool": tool, "arguments": arguments}]})], NAMES
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Skill", {"skill": "find-things"}),
        ("Skill", {"command": "project:find-things"}),
        ("activate_skill", {"name": "find-things"}),
        ("Bash", {"command": "cd /x && cat .claude/skills/find-things/SKILL.md | head"}),
        ("exec_command", {"cmd": ["bash", "-lc", "sed -n 1,9p ~/.agents/skills/find-things/scripts/a.py"]}),
        ("Read", {"file_path": "/home/agent/.opencode/skill/find-things/SKILL.md", "limit": 10}),
    ],
)
def test_calls_of_each_agent_open_a_skill(tool: str, arguments: dict[str, Any]) -> None:
    assert opened(tool, arguments) == ("find-things",)


def test_what_opens_no_skill_or_several() -> None:
    assert opened("Bash", {"command": "cat .claude/skills/*/SKILL.md"}) == NAMES
    assert opened("Bash", {"command": "ls .claude/skills"}) == ()
    assert opened("Bash", {"command": "cat skills/find-things-2/SKILL.md"}) == ()
    assert opened("Bash", {"command": "find-things"}) == ()


def test_the_record_of_an_episode_says_which_skills_it_opened(skills: Path) -> None:
    asks = (
        "import os, openai; c = openai.OpenAI(); "
        "c.chat.completions.create(model='policy', messages=[{'role': 'user', 'content': 'begin'}])"
    )
    call = ToolCall("Bash", {"command": "cat .claude/skills/find-things/SKILL.md"}, "call_1")
    with one_of(section(skills, run=[sys.executable, "-c", asks])) as environment:
        environment.reset(Task("t", "program", 0, {"id": "t"}))
        *_, info = environment.step(Reply("", (call,), finish="tool_calls"))
    assert info.won and info.measures == {"opened_skill/find-things": 1.0}
