"""Ask an agent for several decisions at once: one per state."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.answers import ask
from skillpress.core.interface import Agent, AgentState, Decision, DecisionRequest

SECONDS = 600.0
"""Maximum wait from one decision to the next, unless the caller sets another."""


def decide(
    agent: Agent, states: Sequence[AgentState], seeds: Sequence[int], seconds: float = SECONDS
) -> list[Decision]:
    """Return one decision per state, in order. The agent must have no other open requests.

    Raises:
        UnansweredError: the agent decided nothing for ``seconds``. Open requests are aborted, as after any
            other error.
    """
    asked = zip(states, seeds, strict=True)
    return ask(agent, [DecisionRequest(key, state, seed) for key, (state, seed) in enumerate(asked)], seconds)
