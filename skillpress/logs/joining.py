"""Join model calls to runs. A log with a line for each call repeats the run's history on each line.

A *conversation* is a sequence of calls in which each history begins with the history before it. Its last call
therefore contains everything, and only that is kept. A call continues a conversation

- if its history begins with the conversation's history and answer;
- if it begins with the history, and contains the answer in another form, as some servers log it. Without a
session the tool calls must be the same too, because two runs of one task also begin with the same history;
- or if it asks the same again; this is a retry, so the earlier answer is dropped.

Without a session, records that name different tasks belong to different runs, however similar their
beginnings are.

Records that name their run and keep the answer among the messages are joined in any order.

A record that names its session, or the call that it continues, says more. If such a call begins another
conversation, that conversation either continues the run after a compaction (the history was rewritten), or it
is a side conversation (a sub-agent, a helper). Later calls decide. If the earlier conversation is continued,
the other one was a side conversation; it is left out and counted. Otherwise the run continues in the new one,
without the steps of its history that repeat the run's.

Only hashes, skills and places of a call are kept, so memory use depends on the number of runs and not on
their texts.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from skillpress.environments.calls.steps import TraceStep, action_of
from skillpress.logs.outcome import OutcomeField
from skillpress.logs.projection import Labels
from skillpress.logs.trace import ModelCallPlace, Trace, TracePlace

BESIDE = "conversations beside a run, of sub-agents or helpers"
AGAIN = "calls that were asked again"


class TracePiece(NamedTuple):
    """A record that is, or helps to make up, a trace."""

    place: TracePlace
    earlier: int = 0
    """How many of its first steps may repeat steps of the pieces before it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A record without its texts."""

    labels: tuple[Labels, ...]
    """The projection's labels of each step."""
    tools: tuple[str | None, ...]
    """The tool of each step; None for a step in words."""
    success: bool | None
    task: str
    version: str
    time: float | None
    outcome: str
    score: float | None
    candidates: tuple[OutcomeField, ...]
    left_out: Mapping[str, int]
    format: str
    number: int
    """Its place in the order of reading."""
    pieces: tuple[TracePiece, ...]
    """The places for reading the trace again: one record, or several that form it together."""


@dataclass(slots=True, eq=False)
class _Conversation:
    number: int
    """Number of the conversation, in the order in which they begin."""
    kept: Kept
    steps: array[int]
    """A hash of each step, if the run may continue in another conversation."""
    earlier: int
    """How many steps the history of its first call has, which may repeat those of the run so far."""
    first: int
    """The hash of the history of its first call."""
    asked: int
    """The hash of the history of its last call."""
    end: int
    """The hash of that history and the answer."""
    own: str
    """The id of its last call."""
    prefixes: array[int]
    """A hash of each beginning of the history of its last call, if its records name their run."""
    alone: bool
    """Whether no call names a session or another call."""
    calls: int = 1
    before: _Conversation | None = None
    """The earlier conversation that this one continues."""
    behind: list[_Conversation] = field(default_factory=list)
    """The conversations that seem to continue this one."""
    beside: bool = False
    """Whether this is a side conversation, along with all that seem to continue it."""


class Joiner:
    """Joins calls, given in the order of the log."""

    def __init__(self) -> None:
        self._all: list[_Conversation] = []
        self._open: dict[Hashable, list[_Conversation]] = {}
        """Conversations by the (scope, hash) of their last call's history, and of its history and answer."""
        self._latest: dict[Hashable, _Conversation] = {}
        """The conversation of each session that was last added to."""
        self._named: dict[Hashable, list[_Conversation]] = {}
        """The conversations of each run that records name."""
        self._owned: dict[Hashable, _Conversation] = {}
        """The conversation of each call that has an id."""
        self.left_out = Counter[str]()
        """Number of conversations and calls that belong to no run's steps, by reason; complete after
        ``runs``."""

    def add(self, call: ModelCallPlace, steps: Sequence[TraceStep], kept: Kept) -> None:
        """Add a call.

        Args:
            steps: the call's steps, those of its history included.
        """
        scope = (kept.format, call.session, call.run)
        prefixes = _prefixes(call.history)
        if call.run and (held := self._inside(scope, prefixes)) is not None:
            held.kept = replace(_later(kept, held.kept), number=held.kept.number)
            return
        linked = self._owned.get((kept.format, call.parent)) if call.parent else None
        found = self._continued(scope, prefixes, call, kept) if prefixes[1:] else None
        if found is None and prefixes[1:]:
            found = self._asked_again(scope, call, kept, prefixes[-1], linked)
        named = bool(call.session or call.parent or call.own)
        new = _Conversation(
            number=len(self._all),
            kept=kept,
            steps=array("q", map(_step_hash, steps) if named else ()),
            earlier=call.earlier,
            first=prefixes[-1],
            asked=prefixes[-1],
            end=prefixes[-1] if call.answer is None else hash((prefixes[-1], call.answer)),
            own=call.own,
            prefixes=array("q", prefixes if call.run else ()),
            alone=not call.session and not call.parent,
        )
        if found is not None:
            self._close(scope, found)
            _take_up(found)
            _go_on(found, new)
        else:
            found = self._begun(new, self._latest.get(scope) if call.session else None, call, linked)
            if call.run:
                self._named.setdefault(scope, []).append(found)
        self._note(scope, call, found, kept.format)

    def _inside(self, scope: Hashable, prefixes: Sequence[int]) -> _Conversation | None:
        """The longer conversation that begins with this one, because a run's records may be in any order."""
        last = len(prefixes) - 1
        for held in self._named.get(scope, ()):
            if last and last < len(held.prefixes) - 1 and held.prefixes[last] == prefixes[last]:
                return held
        return None

    def _continued(
        self, scope: Hashable, prefixes: Sequence[int], call: ModelCallPlace, kept: Kept
    ) -> _Conversation | None:
        """The conversation with the longest history that this one begins with."""
        last = len(prefixes) - 1
        for place in range(last, 0, -1):
            for held in reversed(self._open.get((scope, prefixes[place]), ())):
                grown = held.end == prefixes[place] and (place < last or held.asked != held.end)
                if grown and not _of_another_task(held.kept, kept, call):
                    return held
        for place in range(last - 1, 0, -1):
            for held in reversed(self._open.get((scope, prefixes[place]), ())):
                same = held.kept.tools == kept.tools[: len(held.kept.tools)] and any(held.kept.tools)
                goes_on = held.asked == prefixes[place] and (call.session or same)
                if goes_on and not _of_another_task(held.kept, kept, call):
                    return held
        return None

    def _asked_again(
        self, scope: Hashable, call: ModelCallPlace, kept: Kept, asked: int, linked: _Conversation | None
    ) -> _Conversation | None:
        """The conversation whose last call asked the same. First calls without a session may be different
        runs of one task, and records without a history may be equal by chance.
        """
        for held in reversed(self._open.get((scope, asked), ())):
            certain = held.calls > 1 or (call.session and held.before is None)
            certain = certain and not _of_another_task(held.kept, kept, call)
            if held.asked == asked and certain and (linked is None or linked is not held):
                self.left_out[AGAIN] += 1
                return held
        return None

    def _begun(
        self,
        new: _Conversation,
        latest: _Conversation | None,
        call: ModelCallPlace,
        linked: _Conversation | None,
    ) -> _Conversation:
        """A new conversation, linked to the one that it seems to continue."""
        self._all.append(new)
        before = linked or latest
        while linked is None and before is not None and before.beside:
            before = before.before
        if before is not None:
            # Only one conversation can go on from the call that a link names.
            new.beside = linked is not None and (linked.own != call.parent or bool(linked.behind))
            new.before = before
            before.behind.append(new)
        return new

    def _close(self, scope: Hashable, found: _Conversation) -> None:
        for key in {(scope, found.asked), (scope, found.end)}:
            held = self._open[key]
            held.remove(found)
            if not held:
                del self._open[key]

    def _note(self, scope: Hashable, call: ModelCallPlace, found: _Conversation, known: str) -> None:
        if call.history:
            for hashed in {found.asked, found.end}:
                self._open.setdefault((scope, hashed), []).append(found)
        if call.session:
            self._latest[scope] = found
        if call.own:
            self._owned[known, call.own] = found

    def runs(self) -> Iterator[Kept]:
        """The runs, in the order in which they began."""
        grown = {held.first for held in self._all if held.alone and held.calls > 1}
        runs: dict[int, list[_Conversation]] = {}
        roots: list[int] = []
        """The number of each conversation's run; -1 for a side conversation."""
        for held in self._all:
            root = held.number if held.before is None else roots[held.before.number]
            roots.append(-1 if held.beside else root)
            if held.alone and held.calls == 1 and held.first in grown and held.kept.success is None:
                self.left_out[AGAIN] += 1
            elif roots[-1] < 0:
                self.left_out[BESIDE] += 1
            else:
                runs.setdefault(root, []).append(held)
        for conversations in runs.values():
            yield _run(conversations)


def _of_another_task(held: Kept, new: Kept, call: ModelCallPlace) -> bool:
    """Whether two calls name different tasks, and no session, run or link connects them."""
    said = call.session or call.run or call.parent
    return not said and bool(held.task and new.task) and held.task != new.task


def _go_on(found: _Conversation, new: _Conversation) -> None:
    found.kept = _later(found.kept, new.kept)
    found.steps, found.asked, found.end, found.own = new.steps, new.asked, new.end, new.own
    found.prefixes = new.prefixes
    found.calls += 1


def _take_up(found: _Conversation) -> None:
    """Mark the conversations that seemed to continue this one as side conversations, since it is itself
    continued.
    """
    for other in found.behind:
        other.beside = True
    found.behind.clear()


def _later(kept: Kept, new: Kept) -> Kept:
    """A conversation after one more call; facts that only an earlier call stated are kept."""
    return replace(
        new,
        number=kept.number,
        success=kept.success if new.success is None else new.success,
        outcome=new.outcome or kept.outcome,
        score=kept.score if new.score is None else new.score,
        candidates=new.candidates or kept.candidates,
        task=new.task or kept.task,
        version=new.version or kept.version,
        time=new.time if kept.time is None else kept.time,
    )


def _run(held: Sequence[_Conversation]) -> Kept:
    run = held[0].kept
    if len(held) == 1:
        return run
    chosen = list(_new_steps([(one.steps, one.earlier) for one in held]))
    whole = [one.kept for one in held]
    for kept in whole[1:]:
        run = _later(run, kept)
    left_out: Counter[str] = Counter()
    for kept in whole:
        left_out.update(kept.left_out)
    return replace(
        run,
        labels=tuple(whole[one].labels[step] for one, step in chosen),
        tools=tuple(whole[one].tools[step] for one, step in chosen),
        left_out=left_out,
        pieces=tuple(piece._replace(earlier=one.earlier) for one in held for piece in one.kept.pieces),
    )


def joined(parts: Sequence[Trace], pieces: Sequence[TracePiece]) -> Trace:
    """The trace of a run, from the last call of each of its conversations."""
    stretches = [
        (tuple(map(_step_hash, part.steps)), piece.earlier) for part, piece in zip(parts, pieces, strict=True)
    ]
    steps = tuple(parts[one].steps[step] for one, step in _new_steps(stretches))
    return replace(parts[0], steps=steps)


def _new_steps(stretches: Sequence[tuple[Sequence[int], int]]) -> Iterator[tuple[int, int]]:
    """(stretch, step) of each step of a run, without the steps of a history that repeat the run's so far.

    Args:
        stretches: the hashes of a stretch's steps, and how many of them are from its history.
    """
    before: list[int] = []
    for number, (steps, earlier) in enumerate(stretches):
        at = 0
        fresh: list[int] = []
        for place, step in enumerate(steps):
            found = _index(before, step, at) if place < earlier else -1
            if found < 0:
                fresh.append(step)
                yield number, place
            else:
                at = found + 1
        before += fresh


def _prefixes(history: Sequence[int]) -> list[int]:
    """A hash of each beginning of a history, from the empty one to the full history."""
    found = [0]
    for message in history:
        found.append(hash((found[-1], message)))
    return found


def _index(steps: list[int], step: int, start: int) -> int:
    try:
        return steps.index(step, start)
    except ValueError:
        return -1


def _step_hash(step: TraceStep) -> int:
    return hash((step.tool, action_of(step)))
