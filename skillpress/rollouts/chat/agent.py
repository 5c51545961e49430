"""The chat agent: a text-only model as an ``interface.Agent``, for evaluation and never for training.

Its rendering, parser, state update and reward are the same parts as a language agent's.
"""

from __future__ import annotations

import json
from dataclasses import replace

from skillpress.core.interface import (
    AgentState,
    Decision,
    Info,
    Rendering,
    StateUpdate,
    StepReward,
    SummarizingUpdate,
)
from skillpress.core.parsed_action import ParsedAction, Parser
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.outcomes import ModelAnswer, readable
from skillpress.rollouts.chat.server_agent import ServerAgent, tokenless

LONGEST_CALL = 4000
"""Maximum number of characters that are kept of a tool call, which no prompt asks for."""


class ChatAgent(ServerAgent):
    """Acts by asking a server."""

    def __init__(
        self,
        client: ChatClient,
        rendering: Rendering,
        parse: Parser,
        state_update: StateUpdate,
        reward: StepReward,
        at_once: int,
    ) -> None:
        """``at_once`` is the maximum number of open requests."""
        super().__init__(client, reward, at_once)
        self._rendering, self._parse, self._state_update = rendering, parse, state_update

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """Return X_{k+1}."""
        update, parsed = self._state_update, decision.parsed
        if decision.kind == "summary" and isinstance(update, SummarizingUpdate):
            following = update.summed_up(state, parsed)
        else:
            following = update(state, parsed.thought, parsed.action, observation, info)
        return replace(following, knowledge=state.knowledge)

    def _decide(self, state: AgentState, seed: int) -> Decision:
        update, prompt = self._state_update, self._rendering.prompt(state)
        if state.knowledge:
            prompt = f"{state.knowledge}\n{prompt}"
        what = f"task {state.task.task_id}"
        if isinstance(update, SummarizingUpdate) and state.history and update.due(state):
            answer = self._client.ask(f"{prompt}\n{update.request}", seed, what)
            return tokenless(_marked(update.read(answer.text), answer), "summary", answer.usage)
        answer = self._client.ask(prompt, seed, what)
        return tokenless(_marked(_parsed(answer, self._parse), answer), usage=answer.usage)


def _parsed(answer: ModelAnswer, parse: Parser) -> ParsedAction:
    """Parse an answer. A thought that the server sent separately counts as if it preceded the text; a tool
    call without text is kept as a thought."""
    thought = answer.thought
    if answer.ended == "tool_call" and not thought:
        thought = readable(json.dumps(answer.calls)[:LONGEST_CALL])
    parsed = parse(answer.text)
    if thought and parsed.invalid == "missing_thought":
        parsed = parse(f"<think>{thought}</think>{answer.text}")
    return replace(parsed, thought=parsed.thought or thought)


def _marked(parsed: ParsedAction, answer: ModelAnswer) -> ParsedAction:
    """The parsed answer; ``invalid`` is the server's reason, not the parser's, if it was cut short."""
    return parsed if answer.ended == "whole" else replace(parsed, invalid=answer.ended)
