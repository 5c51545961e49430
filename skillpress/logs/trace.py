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
    """A record is not a trace; the message says why. The record is counted, named and skipped."""


class LeftOutError(UnreadableTraceError):
    """A record belongs to no trace but is not damaged; the message describes such records in the plural."""


class NothingSaidError(UnreadableTraceError):
    """Records are valid but not a trace, because no agent acted in them; the message says why."""


@dataclass(frozen=True, slots=True)
class ModelCallPlace:
    """Where one model call belongs in its run, as far as its record says. Call B continues call A if B's
    history begins with A's history and A's answer.
    """

    session: str = ""
    """The run that the record names; empty if it names none."""
    history: tuple[int, ...] = ()
    """One hash for each message that the model was given, without the messages of the answer. A hash covers
    only role, content and calls, has 64 bits, and is the same in every process."""
    parent: str = ""
    """The id of the call that this one continues; empty if the record names none."""
    own: str = ""
    """The call's own id."""
    answer: int | None = None
    """The hash of the answer, as a later history would have it; None if the answer is not exactly one
    message, or if the history contains the answer too."""
    earlier: int = 0
    """Number of the trace's steps that are in the history. The rest are the answer's."""
    run: str = ""
    """The run that the record names, if it may also be a complete run: records that name different runs are
    never joined. Empty if it names none."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages behind a trace, as the model read and wrote them."""

    turns: tuple[LoggedMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools that the record says the model was offered, in the record's own form."""
    shown: int = 0
    """Number of turns at the beginning that are examples in the prompt, not the agent's own."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of an agent, or (with ``call``) one model call of a run and everything before it."""

    name: str
    """The log's name for the trace; may be empty."""
    steps: tuple[TraceStep, ...]
    success: bool | None = None
    """None if the log does not say."""
    task: str = ""
    """Task or session of the trace; traces of the same one are not independent. Empty if it has none."""
    version: str = ""
    """The agent's version."""
    time: float | None = None
    """The time of the trace, in any unit that orders the traces of a log; None if the log does not say."""
    left_out: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Counts of the record's parts that are not these steps, by a plural noun phrase ("runs of sub-agents",
    "demonstration messages", "steps of copied context")."""
    outcome: str = ""
    """The field in which the format itself keeps the outcome (``resolved``, ``reward``, ``scores.match``);
    empty if the record has none. ``success`` and ``score`` are then read from it."""
    score: float | None = None
    """The outcome as a number; None if it is not a number, or NaN. A reward that is neither 0 nor 1 leaves
    ``success`` unknown."""
    candidates: tuple[OutcomeField, ...] = field(default=(), compare=False)
    """Other fields of the record that could say whether the run succeeded. The user may choose one."""
    call: ModelCallPlace | None = None
    """None for a record that is a complete run."""
    dialogue: Dialogue | None = field(default=None, compare=False, repr=False)
    """None for a format that keeps steps, spans or events and not the messages behind them."""


class TracePlace(NamedTuple):
    """The place of a trace."""

    file: int
    """Position in the list of files."""
    number: int
    """Line, or item of a list, counted from 1; for a rollout file the episode, counted from 0."""
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
    """Decode bytes as text. Halves of surrogate pairs, which some writers encode like other characters,
    become question marks.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = content.decode("utf-8", "surrogatepass")
        return found.removeprefix("\ufeff").encode(errors="replace").decode()
