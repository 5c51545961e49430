"""What a parser reads in a response: a thought and an action, and what is wrong with the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

FORMAT_REASONS = frozenset(
    {
        "missing_thought", "missing_plan", "missing_action", "unclosed", "two_actions", "empty", "too_long",
        "unprintable", "chinese", "wrote_output", "prompt_too_long", "cut_off", "refused", "tool_call",
    }
)  # fmt: skip
"""What a parser found wrong with a response, or why an agent asked for none (``prompt_too_long``). A server
that says how its answers end may give the reason too: the response reached its longest (``cut_off``), the
model or a filter declined (``refused``), or it called a tool instead of saying something (``tool_call``).
An environment's reasons for refusing an action are others, so that format validity and admissibility can be
counted apart."""

FORMAT_MEASURE = "format"
"""The one measure (``Info.measures``) that is the agent's own: 1 for a response in the right format."""

LET_THROUGH = frozenset(
    {"missing_thought", "missing_action", "chinese", "wrote_output", "cut_off", "refused"}
)
"""With these an action may be handed on all the same; no environment has a reason of this name."""


@dataclass(frozen=True)
class ParsedAction:
    """What a parser read in a response. A parser never raises: every text yields one of these."""

    thought: str
    action: str
    """The action's text; empty when there is none to send to the environment."""
    invalid: str | None = None
    """Why the format is wrong (``missing_action``, ``two_actions`` ...); None when it is right. Where there
    is an action all the same, the environment gets it."""


class Parser(Protocol):
    """A_k = Parser(th_k): from the decoded response to a thought and an action."""

    def __call__(self, response: str) -> ParsedAction: ...
