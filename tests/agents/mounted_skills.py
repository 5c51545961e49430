"""Coding agents with a mounted skill: does an agent name it in its prompt, and does the record say that it
was opened? A part of ``make test-agents``; agents are found as in ``coding_agents.py``.

Each agent plays two episodes behind isolation: in one a scripted policy reads SKILL.md by the shell, in the
other it calls the agent's own tool for skills, if it has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.program.agent_files import read_agent
from skillpress.environments.program.opened_skills import opened_skills
from skillpress.environments.program.parameters import ProgramParameters
from tests.agents.coding_agents import ENDS, PATH, POLICY, SHELLS
from tests.agents.scripted import ScriptedEngine, call, collected
from tests.support.skills.folders import skill_folder

SKILL, DESCRIPTION = "count-herons", "Use it to count the herons of the northern lake."
TOOLS = {
    "claude-code": ("Skill", "skill"),
    "codex": None,
    "gemini-cli": ("activate_skill", "name"),
    "mini-swe-agent": None,
    "opencode": None,  # its own tool answers "ripgrep execution failed" behind isolation
    "qwen-code": ("skill", "skill"),
}
"""An agent to its own tool for skills and the argument that names one."""


class Opens(ScriptedEngine):
    """Opens the skill once, as the task asks, and ends."""

    def __init__(self, agent: str) -> None:
        super().__init__(POLICY)
        self._agent = agent

    def said(self, prompt: str) -> str:
        tool, shell = TOOLS[self._agent], SHELLS[self._agent]
        if "<tool_response>" in prompt:
            ends = ENDS.get(self._agent)
            return call(shell.tool, **{shell.argument: ends}) if ends else "finished"
        if tool is not None and "by the tool" in prompt:
            return call(tool[0], **{tool[1]: SKILL})
        path = f"{read_agent(self._agent).skills}/{SKILL}/SKILL.md"
        return call(shell.tool, **{shell.argument: f"cat {path}", **shell.also})


def told(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """An episode is what it has recorded; nothing is asked of it."""
    return True


def play(name: str, way: str, skills: Path) -> tuple[Trajectory, list[str]]:
    """An episode, and its prompts."""
    section = ProgramParameters(
        name="program",
        max_steps=6,
        agent=name,
        tasks="none",
        verify=f"{__name__}:told",
        seconds=240.0,
        isolation="bubblewrap",
        memory_mb=4096,
        skills=str(skills),
    )
    engine = Opens(name)
    task = Task("one", "program", 0, {"id": "one", "prompt": f"Open your skill {way}, then end."})
    (episode,) = collected(section, engine, [task], 1 << 18)
    return episode, [POLICY.decode(prompt) for prompt, _ in engine.sampled]


@pytest.mark.parametrize("name", TOOLS)
def test_an_agent_names_its_skill_and_the_record_says_that_it_was_opened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PATH)
    try:
        read_agent(name).version()
    except ParamsError as error:
        pytest.skip(str(error))
    skills = skill_folder(tmp_path / "skills", SKILL, "1. Take the boat.", description=DESCRIPTION)
    for way in ("by the shell", "by the tool")[: 2 if TOOLS[name] else 1]:
        episode, prompts = play(name, way, skills)
        assert episode.won, f"{episode.outcome}: {episode.steps[-1].observation}"
        assert DESCRIPTION in prompts[0], "the agent's prompt names the skill"
        assert "1. Take the boat." in prompts[-1], "the agent found the file"
        assert opened_skills((step.action for step in episode.steps), [SKILL]) == (SKILL,)
