"""The result of reading any format: a trace, its steps, and its place in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpress.core.errors import UserError
from skillpress.environments.calls.steps import TraceStep

if TYPE_CHECKING:
    from skillpress.logs.messages import LoggedMessage
    from skillpress.logs.outcome import OutcomeField


class TracesError(UserError):
    """Logs, rules or options that do not match each other."""


class UnreadableTraceError(ValueError):
    """Why a record is not a trace. The record is counted, named and skipped."""


class LeftOutError(UnreadableTraceError):
    """What a record is that belongs to no trace and is not damaged, as a plural noun phrase."""


class NothingSaidError(UnreadableTraceError):
    """Why records are not a trace although they are as they should be: no agent acted in them."""


@dataclass(frozen=True, slots=True)
class ModelCallPlace:
    """What a record that is one model call of a run says about its place in that run.

    Call B goes on where call A ended if A's history and then A's answer are the beginning of B's history.
    """

    session: str = ""
    """The run that the record names; empty if it names none."""
    history: tuple[int, ...] = ()
    """One hash for each message that the model was asked with, without the messages of the answer. A hash
    is of role, content and calls alone, has 64 bits, and is the same in every process."""
    parent: str = ""
    """The id of the call that this one continues; empty if the record names none."""
    own: str = ""
    """The call's own id."""
    answer: int | None = None
    """The hash of the answer, as a later history would have it; None without one message as the answer, or
    if the history holds the answer too."""
    earlier: int = 0
    """How many of the trace's steps are from the history. The rest are the answer's."""
    run: str = ""
    """What the record says of its run, if it may also be a whole run: records that name different runs are
    never joined. Empty if it names none."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages behind a trace, as the model was shown and has written them."""

    turns: tuple[LoggedMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools that the record says the model was offered, in the record's own form."""
    shown: int = 0
    """How many turns at the beginning are examples in the prompt, which the agent has not said itself."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of an agent, or (with ``call``) one model call of a run and everything before it."""

    name: str
    """The log's name for the trace; may be empty."""
    steps: tuple[TraceStep, ...]
    success: bool | None = None
    """None if the log does not say."""
    task: str = ""
    """Traces of one task (or session) are not independent. Empty for a trace that stands alone."""
    version: str = ""
    """The agent's version."""
    time: float | None = None
    """The time of the trace, in any unit that orders the traces of a log; None if the log does not say."""
    left_out: Mapping[str, int] = field(default_factory=dict, compare=False)
    """What the record holds beside these steps, as a plural noun phrase ("runs of sub-agents",
    "demonstration messages", "steps of copied context"), and how many of each."""
    outcome: str = ""
    """The field in which the format itself keeps the outcome (``resolved``, ``reward``, ``scores.match``);
    empty if the record has none. ``success`` and ``score`` are then read from it."""
    score: float | None = None
    """The outcome as a number; None if it is not a number, or NaN. A reward that is neither 0 nor 1 leaves
    ``success`` unknown."""
    candidates: tuple[OutcomeField, ...] = field(default=(), compare=False)
    """What else in the record could say whether the run succeeded. The user may take one of them."""
    call: ModelCallPlace | None = None
    """None for a record that is a whole run."""
    dialogue: Dialogue | None = field(default=None, compare=False, repr=False)
    """None for a format that keeps steps, spans or events and not the messages behind them."""


class TracePlace(NamedTuple):
    """The place of a trace."""

    file: int
    """Position in the list of files."""
    number: int
    """Line, or item of a list, from 1 on; for a rollout file the episode, from 0 on."""
    position: int
    """Its number among the file's values, from 0 on."""
    offset: int = -1
    """The byte at which its line begins; -1 if the file cannot seek there."""
    member: str = ""
    """The member of an archive that holds it; ``position`` counts the member's values."""


class PassedOver(NamedTuple):
    """A file in a folder, or a member of an archive, that holds no trace."""

    file: str
    why: str


class Bad(NamedTuple):
    """A line that is not a trace."""

    file: str
    number: int
    why: str


def whole_text(content: bytes) -> str:
    """Bytes as text. Halves of surrogate pairs, which some writers encode like other characters, become
    question marks.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = content.decode("utf-8", "surrogatepass")
        return found.removeprefix("\ufeff").encode(errors="replace").decode()
