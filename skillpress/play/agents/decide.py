"""All at once: one decision per state, from any agent."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.answers import ask
from skillpress.core.interface import Agent, AgentState, Decision, DecisionRequest

SECONDS = 600.0
"""From one decision to the next at most, where the caller says nothing."""


def decide(
    agent: Agent, states: Sequence[AgentState], seeds: Sequence[int], seconds: float = SECONDS
) -> list[Decision]:
    """One decision per state, in order; the agent must have nothing else to decide.

    Raises:
        UnansweredError: the agent decided nothing for so many seconds; what is left is aborted, as after
            any other error.
    """
    asked = zip(states, seeds, strict=True)
    return ask(agent, [DecisionRequest(key, state, seed) for key, (state, seed) in enumerate(asked)], seconds)
