"""f_agent by the policy itself: it sums up its past in its own words, and goes on from them.

Turns are kept until there are as many as a prompt shows, or until it is nearly full. Then the policy is asked
for a summary and no action, in the very prompt that it would have acted on; what it answers stands in later
prompts as its notes, and the turns are gone. The environment hears nothing of it.

    X_k --"sum up"--> summary --> X'_k = (X_k without turns, the summary as notes) --> A_k --> O_{k+1}

A summary is sampled as actions are, and is trained as they are: it answers for what the episode came to after
it. So the policy learns what is worth keeping.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.play.agents.state_updates import Window

REQUEST = """\
But do not act yet. The past steps above and what you noted before will not be shown to you again. Write
down in plain words all that you need of them: what you found out, what you tried and what came of it, and
what is still to be done. What you write now becomes your notes.
"""
"""Stands below the prompt, whose last words say how to act."""


@dataclass(frozen=True)
class Summarize:
    """Keeps all turns until they are summed up."""

    turns: int | None
    """So many are summed up, or fewer where they fill the prompt; None waits until they do."""
    grows: ClassVar[bool] = False
    request: ClassVar[str] = REQUEST

    def __call__(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """The next state, with one turn more."""
        return Window(None)(state, thought, action, observation, info)

    def due(self, state: AgentState) -> bool:
        """Whether there are as many turns as a prompt shows."""
        return self.turns is not None and len(state.history) >= max(1, self.turns)

    def read(self, response: str) -> ParsedAction:
        """The summary as a thought, see :func:`written`."""
        return written(response)

    def summed_up(self, state: AgentState, summary: ParsedAction) -> AgentState:
        """The state without its turns; what is no summary leaves the notes as they were.

        So a policy that writes none loses its past and is asked no second time.
        """
        return replace(state, history=(), notes=summary.thought if summary.invalid is None else state.notes)


def written(response: str) -> ParsedAction:
    """What the agent wrote for itself, as a thought: all that stands behind ``</think>``, or all where it
    thought nothing.

    Invalid: ``unclosed`` (a thought without its end), ``empty``.
    """
    if "<think>" in response and "</think>" not in response:
        return ParsedAction("", "", "unclosed")
    text = response.rpartition("</think>")[2].strip()
    return ParsedAction(text, "") if text else ParsedAction("", "", "empty")


def summarize(turns: int | None) -> Summarize:
    """Summaries by the policy, of ``turns`` turns or of what fills a prompt."""
    return Summarize(turns)
