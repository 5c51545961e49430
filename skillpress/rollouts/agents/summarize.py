"""f_agent by the policy itself: it summarizes its past in its own words and continues from the summary.

Turns are kept until there are as many as a prompt shows, or until the prompt is nearly full. Then the policy
is asked for a summary instead of an action, below the same prompt on which it would have acted. Later prompts
show its answer as notes, and the turns are dropped. The environment does not see the summary.

    X_k --"sum up"--> summary --> X'_k = (X_k without turns, the summary as notes) --> A_k --> O_{k+1}

Summaries are sampled and trained in the same way as actions: a summary's reward is what the episode earns
after it. So the policy learns what is worth keeping.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.rollouts.agents.state_updates import Window

REQUEST = """\
But do not act yet. The past steps above and what you noted before will not be shown to you again. Write
down in plain words all that you need of them: what you found out, what you tried and what came of it, and
what is still to be done. What you write now becomes your notes.
"""
"""Text placed below a prompt that itself ends with instructions for acting."""


@dataclass(frozen=True)
class Summarize:
    """Keeps all turns until they are summarized."""

    turns: int | None
    """Number of turns to summarize, fewer if they fill the prompt; None waits until they do."""
    grows: ClassVar[bool] = False
    request: ClassVar[str] = REQUEST

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state, with one more turn."""
        return Window(None)(state, thought, action, observation, info)

    def due(self, state: AgentState) -> bool:
        """Whether there are as many turns as a prompt shows."""
        return self.turns is not None and len(state.history) >= max(1, self.turns)

    def read(self, response: str) -> ParsedAction:
        """The summary as a thought, see :func:`written`."""
        return written(response)

    def summed_up(self, state: AgentState, summary: ParsedAction) -> AgentState:
        """The state without its turns; after an invalid summary they are lost, and the notes stay."""
        return replace(state, history=(), notes=summary.thought if summary.invalid is None else state.notes)


def written(response: str) -> ParsedAction:
    """The agent's text as a thought: everything after ``</think>``, or the whole response if it has no
    thought.

    Invalid: ``unclosed`` (a thought without its end), ``empty``.
    """
    if "<think>" in response and "</think>" not in response:
        return ParsedAction("", "", "unclosed")
    text = response.rpartition("</think>")[2].strip()
    return ParsedAction(text, "") if text else ParsedAction("", "", "empty")
