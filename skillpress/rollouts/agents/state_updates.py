"""f_agent: what the agent keeps of its past, X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}).

Every step is conditioned on its own state, so a state update may forget. The default keeps a window of turns,
as agents with rebuilt prompts do. ``concatenate`` keeps everything, as chats do: the next prompt is the
previous prompt, its response and the new observation, token by token. The engine has then already computed
most of each prompt, and training computes an episode once instead of once per step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from skillpress.core.interface import AgentState, HasNotepad, Info, StateUpdate, Turn
from skillpress.rollouts.agents.context import shortened

LONGEST_SECTION = 2000
"""Maximum number of characters of a notepad section that a prompt shows; the agent may print the rest."""


@dataclass(frozen=True)
class Window:
    """Keeps the last ``turns`` turns."""

    turns: int | None
    """Number of turns to keep; None, for renderings without a limit, keeps all."""
    grows: ClassVar[bool] = False

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; its newest turn is the one just taken."""
        kept = (*state.history, Turn(state.observation, thought, action))
        # ``kept[-0:]`` would be all turns.
        history = kept if self.turns is None else kept[-self.turns :] if self.turns else ()
        return AgentState(
            task=state.task, observation=observation, info=info, history=history, notes=state.notes
        )


@dataclass(frozen=True)
class Concatenate(Window):
    """Keeps every token, in ``AgentState.context``.

    A prompt that would exceed its budget is rebuilt with the last ``turns`` turns, as a window shows them,
    and is extended again from there.
    """

    grows: ClassVar[bool] = True


@dataclass(frozen=True)
class Observations(Window):
    """Keeps the last ``turns`` turns in full, and the thought and action of every step as notes.

    Observations are long and soon out of date; thoughts and actions are short and give the reasons. The notes
    have one numbered line per step and are not shortened when a prompt exceeds its budget.
    """

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; its notes are one line longer."""
        recent = super().__call__(state, thought, action, observation, info)
        said, done = " ".join(thought.split()), " ".join(action.split()) or "(none)"
        line = f"Thought: {said} Action: {done}" if said else f"Action: {done}"
        number = state.notes.count("\n") + 2 if state.notes else 1
        return replace(recent, notes=f"{state.notes}\n{number}. {line}".lstrip("\n"))


@dataclass(frozen=True)
class Notepad(Window):
    """Keeps the last ``turns`` turns, and the content of the environment's notepad as notes.

    The notepad belongs to the environment (L0: an object in the agent's interpreter) and the agent writes it
    by its actions, so the agent chooses what is kept beyond the turns. The notes always equal the current
    notepad, except that each section is shortened to ``LONGEST_SECTION`` characters; prompts show the same
    text.
    """

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state. Its notes are empty if the environment shows no notepad."""
        recent = super().__call__(state, thought, action, observation, info)
        pages = info.state.notepad if isinstance(info.state, HasNotepad) else {}
        sections = [
            f"{name}:\n{shortened(text.strip(), LONGEST_SECTION)}"
            for name, text in pages.items()
            if text.strip()
        ]
        return replace(recent, notes="\n".join(sections))


def environment(turns: int | None) -> StateUpdate:
    """Keep only the current observation, for renderings in which it is the whole state."""
    return Window(0)
