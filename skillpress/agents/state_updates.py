"""f_agent: what the agent keeps of its past, X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}).

Every step is conditioned on its own state, so a state update may forget. The default keeps a window
of turns, as agents with rebuilt prompts do; keeping everything, the usual chat, is a special case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Observations:
    """Keeps the last ``turns`` turns whole, and of every step its thought and action, as notes.

    What was seen is long and soon out of date; what was thought and done is short and says why. Notes
    have one numbered line per step, and are not shortened when a prompt outgrows its budget.
    """

    turns: int | None
    """Turns whose observations are shown; None keeps all."""

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; its notes have one line more."""
        recent = window(self.turns)(state, thought, action, observation, info)
        said, done = " ".join(thought.split()), " ".join(action.split()) or "(none)"
        line = f"Thought: {said} Action: {done}" if said else f"Action: {done}"
        number = state.notes.count("\n") + 2 if state.notes else 1
        return replace(recent, notes=f"{state.notes}\n{number}. {line}".lstrip("\n"))


def window(turns: int | None) -> StateUpdate:
    """The last ``turns`` turns; everything where a rendering names no limit (None)."""
    return Concatenate() if turns is None else Window(turns)


def concatenate(turns: int | None) -> StateUpdate:
    """Everything; the rendering decides how many turns of it the prompt shows."""
    return Concatenate()


def observations(turns: int | None) -> StateUpdate:
    """The last ``turns`` observations, with the thoughts and actions of all steps."""
    return Observations(turns)


def environment(turns: int | None) -> StateUpdate:
    """Nothing but what the environment shows now: for renderings in which that is the whole state."""
    return Window(0)
