"""Ten kinds of agents of nine libraries play two episodes each through the endpoint: ``make test-agents``.

Each library has an environment of its own, ``.venv-agents/NAME``, with the versions of ``requirements/``.
Its program runs as an isolated command, and writes down what it looks up besides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.program.parameters import ProgramParameters
from tests.agents.scripted import ScriptedEngine, byte_policy, collected

HERE = Path(__file__).parent
PROGRAMS, ENVIRONMENTS = "tests/agents/programs", HERE.parents[1] / ".venv-agents"
CLIENTS = {
    "openai": "openai",
    "openai_agents": "openai-agents",
    "smolagents_tools": "smolagents",
    "smolagents_code": "smolagents",
    "pydantic_ai": "pydantic-ai",
    "mini_swe_agent": "mini-swe-agent",
    "langchain_openai": "langchain-openai",
    "litellm": "litellm",
    "inspect_ai": "inspect-ai",
    "anthropic": "anthropic",
}
"""Program to the environment that has its library."""
TASKS = [
    Task("first", "program", 0, {"id": "first", "a": 2, "b": 3}),
    Task("second", "program", 1, {"id": "second", "a": 40, "b": 17}),
]
POLICY = byte_policy()


def told(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> dict[str, Any]:
    """It must say the sum that the tool returned, and look up no host."""
    file = Path(folder) / "looked_up.txt"
    called = file.read_text().splitlines() if file.exists() else []
    said = f"The sum is {task['a'] + task['b']}." in printed
    return {"success": said and not called, "called_home": len(called)}


def play(program: str, seconds: float = 240.0) -> tuple[list[Trajectory], ScriptedEngine]:
    python = ENVIRONMENTS / CLIENTS.get(program, "openai") / "bin" / "python"
    section = ProgramParameters(
        name="program",
        max_steps=6,
        run=[str(python), f"{PROGRAMS}/watched.py", f"{PROGRAMS}/{program}_program.py"],
        files=[PROGRAMS],  # the programs import each other's parts
        tasks="none",
        verify=f"{__name__}:told",
        seconds=seconds,
        isolation="bubblewrap",
    )
    engine = ScriptedEngine(POLICY)
    return collected(section, engine, TASKS, budget=1 << 15), engine


@pytest.mark.parametrize("program", CLIENTS)
def test_two_episodes_are_played_and_every_call_is_a_step_of_the_sampled_tokens(program: str) -> None:
    episodes, engine = play(program)
    for episode in episodes:
        ended = episode.steps[-1]
        assert episode.won, f"{episode.outcome}: {ended.invalid} {ended.observation}"
        assert [step.invalid for step in episode.steps] == [None, None]
    steps = [step for episode in episodes for step in episode.steps]
    assert len(steps) == len(engine.sampled) == 4
    of = dict(engine.sampled)
    for step in steps:
        # A program's `stop` cuts a response at the token that completes it; nothing else may differ.
        assert step.response_ids == of[step.prompt_ids][: len(step.response_ids)]
        cut = len(step.response_ids) < len(of[step.prompt_ids])
        assert not cut or POLICY.decode(step.response_ids).endswith("</code>"), "only smolagents' code stops"


def test_a_program_that_calls_home_is_noticed() -> None:
    episodes, _ = play("curious")
    assert [(episode.won, episode.outcome) for episode in episodes] == [(False, "unsuccessful")] * 2
