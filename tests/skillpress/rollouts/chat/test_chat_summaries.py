"""A chat model summarizes its past every few turns, as a language agent does."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from skillpress.core.engine import Sampling
from skillpress.core.interface import AgentState, Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.agents import OutcomeReward, decide
from skillpress.rollouts.agents.parsing import tagged
from skillpress.rollouts.agents.summarize import REQUEST, Summarize
from skillpress.rollouts.chat.agent import ChatAgent
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.server import ChatServer
from tests.support.rollouts.chat_server import chat_server


@dataclass(frozen=True)
class Choosing:
    """Shows notes and the possible actions."""

    parser: str = "tagged"
    history: int | None = 1

    def prompt(self, state: AgentState) -> str:
        return f"[{state.notes}] The actions that you can take now: ['look', 'wait']."

    def continuation(self, state: AgentState) -> str:
        return ""

    def response(self, action: str, info: Info) -> str:
        return action


def test_it_is_asked_to_sum_up_and_then_to_act(tmp_path: Path) -> None:
    with chat_server() as (url, heard):
        client = ChatClient(ChatServer(url, "toy"), Sampling(), tmp_path / "answers.jsonl")
        agent = ChatAgent(client, Choosing(), tagged, Summarize(1), OutcomeReward(10.0, 0.01), at_once=1)
        with closing(agent):
            state = AgentState(Task("t", "none", 0, {}), "a cliff", Info())
            found = []
            for _ in range(3):
                (decision,) = decide(agent, [state], [0])
                state = agent.update_state(state, decision, "a net", Info())
                found.append((decision.kind == "summary", decision.parsed.action))
    asked = [body["messages"][0]["content"] for body in heard.bodies]
    assert found == [(False, "look"), (True, ""), (False, "look")]
    assert [prompt.endswith(REQUEST) for prompt in asked] == [False, True, False]
    assert asked[2].startswith("[<action>look</action>]"), "what stood behind the thought is its notes"
