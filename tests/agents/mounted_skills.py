"""Coding agents with a mounted skill: does an agent name it in its prompt, and does the record say that it
was opened? A part of ``make test-agents``; an agent that is not installed is left out.

Each agent plays two episodes behind isolation: in one a scripted policy reads SKILL.md by the shell, in the
other it calls the agent's own tool for skills, if it has one.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.program.agent_files import read_agent
from skillpress.environments.program.opened_skills import opened_skills
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.rollouts.programs.agent import ProgramAgent
from skillpress.rollouts.programs.tool_calls import hermes
from tests.agents.scripted import ScriptedEngine, byte_policy
from tests.support.skills.folders import skill_folder

DESCRIPTION = "Use it to count the herons of the northern lake."
POLICY = byte_policy()


@dataclass(frozen=True)
class CodingAgent:
    """How an agent's tools are called."""

    shell: dict[str, Any]
    """The call that reads the file, without ``name``."""
    shell_name: str
    tool: str = ""
    """Its own tool for skills; empty if it has none."""
    argument: str = "name"


AGENTS = {
    "claude-code": CodingAgent({"command": "cat {}"}, "Bash", "Skill", "skill"),
    "codex": CodingAgent({"cmd": "cat {}"}, "exec_command"),
    "gemini-cli": CodingAgent({"command": "cat {}"}, "run_shell_command", "activate_skill"),
    # Its own tool answers "ripgrep execution failed" behind isolation.
    "opencode": CodingAgent({"command": "cat {}", "description": "x"}, "bash"),
    "qwen-code": CodingAgent(
        {"command": "cat {}", "is_background": False}, "run_shell_command", "skill", "skill"
    ),
}


class Opens(ScriptedEngine):
    """Opens the skill once, as the task asks, and ends."""

    agent: CodingAgent
    place: str

    def said(self, prompt: str) -> str:  # type: ignore[override]
        if "<tool_response>" in prompt:
            return "finished"
        if "by the tool" in prompt:
            return _call(self.agent.tool, {self.agent.argument: "count-herons"})
        path = f"{self.place}/count-herons/SKILL.md"
        values = {k: v.format(path) if isinstance(v, str) else v for k, v in self.agent.shell.items()}
        return _call(self.agent.shell_name, values)


def _call(name: str, arguments: dict[str, Any]) -> str:
    told = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{told}\n</tool_call>"


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
    shared, engine = SharedPrograms(section, 1), Opens(POLICY)
    engine.agent, engine.place = AGENTS[name], read_agent(name).skills
    agent = ProgramAgent(
        render=POLICY.encode_request,
        budget=1 << 18,
        read=hermes,
        decode=POLICY.decode,
        reward=OutcomeReward(1.0, 0.0, "any", "step", {}),
        engine=engine,
        sampling=Sampling(max_new_tokens=512),
    )
    environments = ThreadVectorEnv(shared, shared.seconds, shared.close)
    task = Task("one", "program", 0, {"id": "one", "prompt": f"Open your skill {way}, then end."})
    with Collector(environments, agent, 1) as collector:
        episode = collector.collect(requests([task], 1, 7, "test"))[0]
    return episode, [POLICY.decode(prompt) for prompt, _ in engine.sampled]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_names_its_skill_and_the_record_says_that_it_was_opened(name: str, tmp_path: Path) -> None:
    if not shutil.which(read_agent(name).run[0]):
        pytest.skip(f"not installed: {read_agent(name).install}")
    skills = skill_folder(tmp_path / "skills", "count-herons", "1. Take the boat.", description=DESCRIPTION)
    for way in ("by the shell", "by the tool")[: 2 if AGENTS[name].tool else 1]:
        episode, prompts = play(name, way, skills)
        assert episode.won, f"{episode.outcome}: {episode.steps[-1].observation}"
        assert DESCRIPTION in prompts[0], "the agent's prompt names the skill"
        assert "1. Take the boat." in prompts[-1], "the agent found the file"
        assert opened_skills((step.action for step in episode.steps), ["count-herons"]) == ("count-herons",)
