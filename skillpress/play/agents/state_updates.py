"""f_agent: what the agent keeps of its past, X_{k+1} = f_agent(X_k, th_k, A_k, O_{k+1}).

Every step is conditioned on its own state, so a state update may forget. The default keeps a window
of turns, as agents with rebuilt prompts do. ``concatenate`` keeps everything, as chats do: the next prompt is
the last one, the response to it and what was observed since, token by token. Then an engine has most of a
prompt computed already, and training computes an episode once in place of every step's prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from skillpress.core.interface import AgentState, HasNotepad, Info, StateUpdate, Turn
from skillpress.play.agents.shortening import shortened

LONGEST_SECTION = 2000
"""Characters of a notepad's section that are shown; the agent may print the rest."""


@dataclass(frozen=True)
class Window:
    """Keeps the last ``turns`` turns."""

    turns: int | None
    """None keeps all."""
    grows: ClassVar[bool] = False

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; the turn just taken is its newest."""
        kept = (*state.history, Turn(state.observation, thought, action))
        history = kept if self.turns is None else kept[-self.turns :] if self.turns else ()
        return AgentState(
            task=state.task, observation=observation, info=info, history=history, notes=state.notes
        )


@dataclass(frozen=True)
class Concatenate(Window):
    """Keeps every token, in ``AgentState.context``.

    A prompt that would outgrow its budget begins anew, with the last ``turns`` turns as a window shows
    them, and grows again from there.
    """

    grows: ClassVar[bool] = True


@dataclass(frozen=True)
class Observations:
    """Keeps the last ``turns`` turns whole, and of every step its thought and action, as notes.

    What was seen is long and soon out of date; what was thought and done is short and says why. Notes
    have one numbered line per step, and are not shortened when a prompt outgrows its budget.
    """

    turns: int | None
    """Turns whose observations are shown; None keeps all."""
    grows: ClassVar[bool] = False

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; its notes have one line more."""
        recent = Window(self.turns)(state, thought, action, observation, info)
        said, done = " ".join(thought.split()), " ".join(action.split()) or "(none)"
        line = f"Thought: {said} Action: {done}" if said else f"Action: {done}"
        number = state.notes.count("\n") + 2 if state.notes else 1
        return replace(recent, notes=f"{state.notes}\n{number}. {line}".lstrip("\n"))


@dataclass(frozen=True)
class Notepad:
    """Keeps the last ``turns`` turns, and as notes what stands in the notepad that the environment shows.

    The notepad is the environment's (L0: an object in the agent's interpreter) and the agent writes it by its
    actions, so that what is kept beyond the turns is the agent's own choice. The notes are as the notepad
    stands now, whole but for what is longer than ``LONGEST_SECTION``, and so is what a prompt shows of it.
    """

    turns: int | None
    """None keeps all."""
    grows: ClassVar[bool] = False

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state; an environment that has no notepad now leaves no notes."""
        recent = Window(self.turns)(state, thought, action, observation, info)
        pages = info.state.notepad if isinstance(info.state, HasNotepad) else {}
        sections = [
            f"{name}:\n{shortened(text.strip(), LONGEST_SECTION)}"
            for name, text in pages.items()
            if text.strip()
        ]
        return replace(recent, notes="\n".join(sections))


def window(turns: int | None) -> StateUpdate:
    """The last ``turns`` turns; everything where a rendering names no limit (None)."""
    return Window(turns)


def concatenate(turns: int | None) -> StateUpdate:
    """Everything, token by token; the last ``turns`` turns in a prompt that begins anew."""
    return Concatenate(turns)


def observations(turns: int | None) -> StateUpdate:
    """The last ``turns`` observations, with the thoughts and actions of all steps."""
    return Observations(turns)


def environment(turns: int | None) -> StateUpdate:
    """Nothing but what the environment shows now: for renderings in which that is the whole state."""
    return Window(0)


def notepad(turns: int | None) -> StateUpdate:
    """The last ``turns`` turns, with the notepad that the environment shows as notes."""
    return Notepad(turns)
