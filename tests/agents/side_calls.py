"""Calls that coding agents make beside their work, brought about: a part of ``make test-agents``.

Each agent's file is changed so that the agent asks for a title, for who speaks next, or soon for a summary of
a conversation that is too long. Agents are found as in ``coding_agents.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.program.agent_files import read_agent, shipped
from skillpress.environments.program.parameters import ProgramParameters
from tests.agents.coding_agents import PATH, POLICY, SHELLS
from tests.agents.scripted import ScriptedEngine, call, collected
from tests.skillpress.environments.program.test_coding_agents import learned

TASK = Task("one", "program", 0, {"id": "one", "prompt": "Count the herons of the northern lake."})
SUMMARY = "<state_snapshot>Three herons were counted.</state_snapshot>"
ANSWERS = {
    "title": "Count herons",
    "compaction": SUMMARY,
    "next_speaker": '{"reasoning": "It is done.", "next_speaker": "user"}',
}


class Case(NamedTuple):
    """A call beside the work."""

    agent: str
    side: str
    changed: Mapping[str, str] = {}
    """Maps texts of the agent's file to others."""
    budget: int = 1 << 18
    """The most tokens of a prompt."""


CASES = [
    Case("opencode", "title", {"  - --title=task\n": ""}),
    Case("opencode", "compaction", {"200000": "50000", "32000": "8000"}),
    Case("claude-code", "compaction", budget=140_000),  # it learns its limit from the refusal
    Case("codex", "compaction", {"web_search =": "model_auto_compact_token_limit = 30000\n    web_search ="}),
    Case("gemini-cli", "compaction", {'{"general"': '{"model": {"compressionThreshold": 0.055}, "general"'}),
    Case("qwen-code", "compaction"),
    Case(
        "qwen-code",
        "next_speaker",
        {'{"telemetry"': '{"model": {"skipNextSpeakerCheck": false}, "telemetry"'},
    ),
]
REFUSED = [
    Case("claude-code", "title", {'TRAFFIC: "1"': 'TRAFFIC: ""'}),
    Case(
        "gemini-cli", "next_speaker", {'{"general"': '{"model": {"skipNextSpeakerCheck": false}, "general"'}
    ),
]
"""Calls that state a form of the answer."""


class Works(ScriptedEngine):
    """Prints much until it is asked for a summary, or once, and ends."""

    def __init__(self, case: Case) -> None:
        super().__init__(POLICY)
        self._case, self._words = case, read_agent(case.agent).side_calls.get(case.side)

    def said(self, prompt: str) -> str:
        shell, turns = SHELLS[self._case.agent], prompt.count("<tool_response>\n")
        if self._words is not None and self._words in prompt:
            return ANSWERS[self._case.side]
        if SUMMARY in prompt or (turns and self._case.side != "compaction"):
            return "It is done."
        # Gemini CLI compacts what is before a message of its user, such as the one by which it breaks a loop.
        first = 1 + prompt.count("Please take a step back")
        return call(shell.tool, **{shell.argument: f"seq {first} 5000", **shell.also})


def told(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """An episode is what it has recorded; nothing is asked of it."""
    return True


def play(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Trajectory:
    monkeypatch.setenv("PATH", PATH)
    try:
        read_agent(case.agent).version()
    except ParamsError as error:
        pytest.skip(str(error))
    text = shipped()[case.agent].read_text()
    for old, new in case.changed.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "agent.yaml"
    file.write_text(text)
    section = ProgramParameters(
        name="program",
        max_steps=12,
        agent=str(file),
        tasks="none",
        verify=f"{__name__}:told",
        seconds=240.0,
        isolation="bubblewrap",
        memory_mb=4096,
    )
    (episode,) = collected(section, Works(case), [TASK], case.budget)
    assert episode.won, f"{episode.outcome}: {episode.steps[-1].observation}"
    return episode


def named(case: Case) -> str:
    return f"{case.agent}-{case.side}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_call_beside_the_work_is_a_side_step_that_training_can_leave_out(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = play(case, tmp_path, monkeypatch)
    answered = [POLICY.decode(step.response_ids).startswith(ANSWERS[case.side]) for step in episode.steps]
    assert any(answered) and [step.kind == "side" for step in episode.steps] == answered
    lengths = [len(step.response_ids) for step in episode.steps]
    work = [0 if step.kind == "side" else length for step, length in zip(episode.steps, lengths, strict=True)]
    assert learned(TASK, episode, side_calls=True) == lengths
    assert learned(TASK, episode, side_calls=False) == work
    if case.side == "compaction":
        before, after = max(len(step.prompt_ids) for step in episode.steps), episode.steps[-1].prompt_ids
        assert SUMMARY in POLICY.decode(after) and len(after) < before, "the agent goes on from the summary"


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_a_call_that_states_a_form_of_its_answer_is_refused_and_costs_no_step(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = play(case, tmp_path, monkeypatch)
    assert [(step.kind, step.invalid) for step in episode.steps] == [("action", None)] * 2
