"""What a parser reads from a response: a thought, an action, and what is wrong with the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol

if TYPE_CHECKING:  # type variables have no defaults before Python 3.13 (PEP 696)
    from typing_extensions import TypeVar

    Act = TypeVar("Act", default=str)
    ActContra = TypeVar("ActContra", contravariant=True, default=str)
else:
    from typing import TypeVar

    Act, ActContra = TypeVar("Act"), TypeVar("ActContra", contravariant=True)

FORMAT_REASONS = frozenset(
    {
        "missing_thought", "missing_plan", "missing_action", "unclosed", "two_actions", "empty", "too_long",
        "unprintable", "chinese", "wrote_output", "prompt_too_long", "cut_off", "refused", "tool_call",
    }
)  # fmt: skip
"""What a parser found wrong with a response, or why an agent did not ask for one (``prompt_too_long``). A
server that says why a response ended may give the reason too: it reached its maximum length (``cut_off``),
the model or a filter declined (``refused``), or it called a tool instead of giving text (``tool_call``).
An environment uses other reasons to refuse an action, so that reports can count format errors and
inadmissible actions separately."""

FORMAT_MEASURE = "format"
"""The one measure (``Info.measures``) that the agent itself sets: 1 for a response in the right format."""

LET_THROUGH = frozenset(
    {"missing_thought", "missing_action", "chinese", "wrote_output", "cut_off", "refused"}
)
"""With these reasons a parser may still pass an action on. No environment has a reason of these names."""


@dataclass(frozen=True)
class ParsedAction(Generic[Act]):
    """What a parser read from a response. A parser never raises: every text gives a ParsedAction."""

    thought: str
    action: Act
    """What the environment gets, whose ``str()`` a record keeps: a text, empty if there is none to send, or
    a program's ``Reply``."""
    invalid: str | None = None
    """Why the format is wrong; None if it is right. The environment still gets an action, if there is one."""
    end: int | None = None
    """Number of characters of the response that count; the agent drops the tokens behind them. None keeps
    all."""


class Parser(Protocol):
    """A_k = Parser(th_k): from the decoded response to a thought and an action."""

    def __call__(self, response: str) -> ParsedAction: ...
