"""f_agent: what the agent keeps of its past, X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}).

Every step is conditioned on its own state, so a state update may forget. The default keeps a window
of turns, as agents with rebuilt prompts do; keeping everything, the usual chat, is a special case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from skillpress.interface import AgentState, Info, StateUpdate, Turn


@dataclass(frozen=True)
class Window:
    """Keeps the last ``turns`` turns."""

    turns: int

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; the turn just taken is its newest."""
        kept = (*state.history, Turn(state.observation, thought, action))
        history = kept[-self.turns :] if self.turns else ()
        return AgentState(state.task, observation, info, history, state.notes)


@dataclass(frozen=True)
class Concatenate:
    """Keeps every turn."""

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; the turn just taken is its newest."""
        turn = Turn(state.observation, thought, action)
        return AgentState(state.task, observation, info, (*state.history, turn), state.notes)


def window(turns: int | None) -> StateUpdate:
    """The last ``turns`` turns; everything where a rendering names no limit (None)."""
    return Concatenate() if turns is None else Window(turns)


def concatenate(turns: int | None) -> StateUpdate:
    """Everything; how many turns the prompt shows is then the rendering's affair."""
    return Concatenate()


def environment(turns: int | None) -> StateUpdate:
    """Nothing but what the world shows now: for renderings in which that is the whole state."""
    return Window(0)


STATE_UPDATES: Mapping[str, Callable[[int | None], StateUpdate]] = {
    "window": window,
    "concatenate": concatenate,
    "environment": environment,
}
"""Name to a state update, made for the number of turns that the prompt shows."""
