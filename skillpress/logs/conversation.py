"""A conversation as the steps of an agent.

Every tool call is a step, and so is a turn of the assistant without a call, in words. Answers find their
calls by their ids. Ids may be missing, null or used again in every turn; then an answer belongs to the
first call of the last turn that has none yet.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from skillpress.environments.calls.steps import TraceStep, text_of
from skillpress.logs.calls_in_json import Written
from skillpress.logs.calls_in_text import Heard, Notation, notation_of, written
from skillpress.logs.messages import (
    CallResult,
    LoggedCall,
    LoggedMessage,
    flattened,
    is_demonstration,
    speaker_of,
    turn_of,
    unwrapped,
)
from skillpress.logs.thoughts import without_thoughts
from skillpress.logs.trace import UnreadableTraceError

DEMONSTRATIONS = "demonstration messages"
UNKNOWN_SPEAKERS = "messages of other speakers"


@dataclass(frozen=True)
class LoggedConversation:
    """What an agent did in a conversation."""

    steps: tuple[TraceStep, ...] = ()
    turns: tuple[LoggedMessage, ...] = ()
    asked: int = 0
    """Number of turns that the model was given."""
    earlier: int = 0
    """How many of the steps belong to these turns."""
    left_out: dict[str, int] = field(default_factory=dict)
    shown: int = 0
    """How many of the turns are examples in the prompt."""


def read_conversation(
    messages: Sequence[Any],
    answer: Sequence[Any] = (),
    notation: Notation | None = None,
    tools: bool = False,
) -> LoggedConversation:
    """The steps of a conversation.

    Args:
        answer: messages that the model gave to ``messages``, if the record keeps them apart.
        notation: how the agent writes calls into its words; if None, it is detected.
        tools: whether the record lists the tools that the agent has.

    Raises:
        UnreadableTraceError: a message cannot be read, or no message is an assistant's.
    """
    left_out: Counter[str] = Counter()
    asked = _turns(messages, left_out)
    given = _turns(answer, left_out)
    if asked and (asked[-1] in given[:1] or (not given and asked[-1].role == "assistant")):
        given = [asked.pop()]  # the messages hold the answer too
    turns = [*asked, *given]
    if all(turn.role != "assistant" for turn in turns):
        _refuse_strangers(messages, left_out)
    if notation is None:
        notation = _notation(turns, tools)
    steps, earlier = _steps(turns, len(asked), notation)
    if unknown := sum(turn.role == "other" for turn in turns):
        left_out[UNKNOWN_SPEAKERS] = unknown
    return LoggedConversation(
        tuple(steps), tuple(turns), asked=len(asked), earlier=earlier, left_out=dict(left_out)
    )


def hashes_of(turns: Sequence[LoggedMessage]) -> tuple[int, ...]:
    """One 64-bit number for each turn, of its role, its words without thoughts, its calls and its answers."""
    return tuple(map(_hash, turns))


def _turns(messages: Sequence[Any], left_out: Counter[str]) -> list[LoggedMessage]:
    """The turns of messages. Items of the responses API that follow one another are one turn."""
    turns: list[LoggedMessage] = []
    for message in flattened(messages):
        if isinstance(message, dict) and is_demonstration(message):
            left_out[DEMONSTRATIONS] += 1
            continue
        turn = turn_of(message)
        if turn is None:
            continue
        before = turns[-1] if turns else None
        if before is not None and turn.item and before.item and before.role == turn.role == "assistant":
            words = turn.words if before.words is None else before.words
            new = tuple(call for call in turn.calls if not call.identity or call not in before.calls)
            calls, answers = before.calls + new, before.answers + turn.answers
            turns[-1] = LoggedMessage("assistant", words, calls=calls, answers=answers, item=True)
        else:
            turns.append(turn)
    return turns


def _refuse_strangers(messages: Sequence[Any], left_out: Counter[str]) -> None:
    """Refuse a conversation without an agent."""
    if left_out[DEMONSTRATIONS]:
        raise UnreadableTraceError("no message is an assistant's, apart from demonstrations")
    named = dict.fromkeys(
        str(speaker_of(unwrapped(message))) for message in messages if isinstance(message, dict)
    )
    raise UnreadableTraceError(
        f"no message is an assistant's; the speakers are {', '.join(named)[:120] or 'none'}"
    )


def _notation(turns: Sequence[LoggedMessage], tools: bool) -> Notation | None:
    """How the agent writes calls into its words."""
    said, replies = [], []
    for number, turn in enumerate(turns):
        if turn.role == "assistant" and isinstance(turn.words, str) and not turn.calls:
            said.append(turn.words)
            behind = turns[number + 1] if number + 1 < len(turns) else None
            if behind is not None and behind.role != "assistant":
                replies.append(_heard(behind))
    if not any(mark in words for words in said for mark in ("<", "`", "{", ":", "[TOOL")):
        return None
    system = "\n".join(text_of(turn.words) for turn in turns if turn.role == "system")
    task = next((text_of(turn.words) for turn in turns if turn.role == "user"), "")
    called = any(turn.calls for turn in turns)
    return notation_of(said, Heard(system, task, replies=replies, tools=tools, called=called))


def _key(call: LoggedCall) -> tuple[str, str, str]:
    return call.identity, call.tool, _as_text(call.arguments)


class _Calls:
    """The calls that wait for their answers."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[int]] = {}
        self._last: list[int] = []
        self._done: set[int] = set()
        self._tools: dict[int, str] = {}
        self._asked: dict[tuple[str, str, str], int] = {}

    def again(self, call: LoggedCall) -> int | None:
        """The step of the same call, by its id, tool and arguments, if it waits for its answer: some logs
        repeat a call in each message until it is answered. None for a new call.
        """
        step = self._asked.get(_key(call)) if call.identity else None
        return None if step in self._done else step

    def turn(self, calls: Sequence[tuple[int, LoggedCall]]) -> None:
        """The calls of one turn, with the step of each."""
        last = []
        by_id: dict[str, list[int]] = {}
        for step, call in calls:
            if call.identity:
                by_id.setdefault(call.identity, []).append(step)
                self._asked[_key(call)] = step
            last.append(step)
            self._tools[step] = call.tool
        self._by_id.update(by_id)
        self._last = last

    def of(self, answer: CallResult) -> int | None:
        """The step that is answered; None if no call waits."""
        named = self._by_id.get(answer.identity)
        if named is not None and len(named) == 1 and named[0] not in self._done:
            self._done.add(named[0])
            return named[0]
        waiting = [step for step in self._by_id.get(answer.identity, ()) if step not in self._done]
        if not waiting:
            waiting = [step for step in self._last if step not in self._done]
            named = [step for step in waiting if answer.tool and self._tools[step] == answer.tool]
            waiting = named or waiting
        if not waiting:
            return None
        self._done.add(waiting[0])
        return waiting[0]


def _steps(
    turns: Sequence[LoggedMessage], asked: int, notation: Notation | None
) -> tuple[list[TraceStep], int]:
    """(steps, how many belong to the first ``asked`` turns)."""
    steps: list[TraceStep] = []
    calls = _Calls()
    earlier = 0
    for number, turn in enumerate(turns):
        if number == asked:
            earlier = len(steps)
        behind = turns[number + 1] if number + 1 < len(turns) else None
        if turn.role == "assistant":
            if turn.calls:
                placed: dict[int, LoggedCall] = {}
                for call in turn.calls:
                    place = calls.again(call)
                    if place is None:
                        place = len(steps)
                        steps.append(TraceStep(call.tool, call.arguments))
                    placed[place] = call
                calls.turn(list(placed.items()))
            else:
                steps += _in_words(turn, notation, behind)
        for answer in turn.answers:
            if (place := calls.of(answer)) is not None:
                content = "" if answer.content is None else answer.content
                steps[place] = steps[place]._replace(answer=content, refused=answer.failed)
    return steps, earlier if asked < len(turns) else len(steps)


def _in_words(
    turn: LoggedMessage, notation: Notation | None, behind: LoggedMessage | None
) -> Iterator[TraceStep]:
    """The steps of a turn without calls: the calls in its words, or the words."""
    heard = _heard(behind) if behind is not None and behind.role != "assistant" else ""
    found: list[Written] = [] if notation is None else written(notation, turn.words)
    for tool, arguments in found:
        yield TraceStep(tool, arguments, heard)
    if not found:
        yield TraceStep(None, turn.words, heard)


def _heard(turn: LoggedMessage) -> str:
    """A message that is not the agent's, as text."""
    if turn.words is None and turn.answers:
        return "\n".join(text_of(answer.content) for answer in turn.answers)
    return text_of(turn.words)


def _hash(turn: LoggedMessage) -> int:
    text = "\0".join((turn.role, *_parts(turn)))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _parts(turn: LoggedMessage) -> Iterator[str]:
    if turn.words:
        words = text_of(turn.words)  # many servers take earlier thoughts out of the history
        yield without_thoughts(words) if turn.role == "assistant" else words
    for call in turn.calls:
        yield f"call {call.tool}"
        yield _as_text(call.arguments)
    for answer in turn.answers:
        yield _as_text(answer.content)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
