"""The coding agents that have a file play two equal tasks each, isolated: part of ``make test-agents``.

An agent makes two calls and finishes. Each is looked for in ``.venv-agents``, in the folders that
SKILLPRESS_AGENTS names, and on PATH; one that is not there is skipped by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task, TokenIds, Trajectory
from skillpress.environments.program.agent_files import read_agent, shipped
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.rollouts.programs.isolated import FAKETIME
from tests.agents.scripted import ScriptedEngine, byte_policy, call, collected

INSTALLED = [str(path) for path in Path(__file__).parents[2].glob(".venv-agents/*/bin")]
PATH = os.pathsep.join(filter(None, [*INSTALLED, os.environ.get("SKILLPRESS_AGENTS"), os.environ["PATH"]]))
TASKS = [
    Task(name, "program", 0, {"id": name, "prompt": "Write one into a.txt, then read it."})
    for name in ("first", "second")
]
POLICY = byte_policy()


class Shell(NamedTuple):
    """How an agent runs a command, and what the policy learns from it."""

    tool: str
    argument: str
    also: Mapping[str, object] = {}
    """Further arguments that the tool needs."""
    repeats: bool = True
    """Whether equal tasks must give equal prompts."""


SHELLS = {
    "claude-code": Shell("Bash", "command"),
    "codex": Shell("exec_command", "cmd", repeats=False),  # results have random numbers
    "gemini-cli": Shell("run_shell_command", "command"),
    "mini-swe-agent": Shell("bash", "command"),
    "opencode": Shell("bash", "command", {"description": "work"}),
    "qwen-code": Shell("run_shell_command", "command", {"is_background": False}),
}

ENDS = {"mini-swe-agent": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
"""The command by which an agent ends; the others end with words."""

SLEEPS = {"mini-swe-agent"}
"""Written in Python, whose ``time.sleep`` is an error under libfaketime 0.9.10."""


class Coder(ScriptedEngine):
    """Writes a file, reads it, and finishes."""

    def __init__(self, agent: str) -> None:
        super().__init__(POLICY)
        self._agent = agent

    def said(self, prompt: str) -> str:
        shell, turn = SHELLS[self._agent], prompt.count("<tool_response>\n")
        command = {0: "echo one > a.txt", 1: "cat a.txt"}.get(turn, ENDS.get(self._agent))
        return call(shell.tool, **{shell.argument: command, **shell.also}) if command else "It says one."


def told(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> dict[str, Any]:
    """The file must be there, and the last request must have its content."""
    file = Path(folder, "a.txt")
    read = any("one" in message["content"] for message in calls[-1]["messages"] if message["role"] == "tool")
    return {"success": read and file.is_file() and file.read_text() == "one\n"}


def play(agent: str) -> list[Trajectory]:
    section = ProgramParameters(
        name="program",
        max_steps=8,
        agent=agent,
        tasks="none",
        verify=f"{__name__}:told",
        seconds=300.0,
        isolation="bubblewrap",
        memory_mb=4096,
        date=date(2025, 3, 4) if agent not in SLEEPS and any(Path("/usr").glob(FAKETIME[0])) else None,
    )
    return collected(section, Coder(agent), TASKS, budget=1 << 18)


def differing(one: TokenIds, other: TokenIds) -> str:
    """Where two prompts begin to differ, with the words around it; empty if one begins with the other."""
    place = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if place is None:
        return ""
    texts = [POLICY.decode(ids[max(0, place - 60) : place + 40]) for ids in (one, other)]
    return f"token {place}: {texts[0]!r} against {texts[1]!r}"


def not_extended(episode: Trajectory) -> list[str]:
    """Each prompt that does not begin with the prompt and the response before it, and where."""
    found = []
    for number, (step, after) in enumerate(pairwise(episode.steps), 2):
        before = (*step.prompt_ids, *step.response_ids)
        if tuple(after.prompt_ids[: len(before)]) != before:
            found.append(f"prompt {number}: {differing(before, after.prompt_ids) or 'too short'}")
    return found


def unequal(one: Trajectory, other: Trajectory) -> list[str]:
    """Each pair of prompts of two episodes that are not equal, and where."""
    prompts = [(a.prompt_ids, b.prompt_ids) for a, b in zip(one.steps, other.steps, strict=True)]
    return [f"prompt {n}, {differing(a, b)}" for n, (a, b) in enumerate(prompts, 1) if a != b]


@pytest.mark.parametrize("agent", shipped())
def test_an_agent_finishes_and_each_prompt_extends_the_last(
    agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PATH)
    try:
        version = read_agent(agent).version()
    except ParamsError as error:
        pytest.skip(str(error))
    episodes = play(agent)
    for episode in episodes:
        assert episode.won, f"{episode.outcome}: {episode.steps[-1].observation}"
        assert [(step.invalid, step.kind) for step in episode.steps] == [(None, "action")] * 3
        assert not_extended(episode) == []
    apart = unequal(*episodes)
    size = len(episodes[0].steps[0].prompt_ids)
    asked = POLICY.decode(episodes[0].steps[0].prompt_ids)
    days = sorted(set(re.findall(r"(?:Mar|Nov)\w* \d+,? 20\d\d|20\d\d-\d\d-\d\d", asked)))
    same = apart[:1] or "equal prompts"
    print(f"\n{agent} {version}: first prompt {size:,} bytes, with the days {days}; equal tasks: {same}")
    assert not (apart and SHELLS[agent].repeats)


def test_the_packages_that_npm_installs_are_those_of_the_agents_files() -> None:
    pinned = Path(__file__).with_name("coding_agents.txt").read_text().split()
    agents = [agent for agent in map(read_agent, shipped()) if agent.install.startswith("npm")]
    assert pinned == sorted(agent.tried.replace(" ", "@") for agent in agents)
