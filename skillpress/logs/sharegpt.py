"""ShareGPT: ``conversations`` of ``from`` and ``value``.

Calls are turns of their own (``function_call``, with JSON as the value) or written in the text. Our own
export (``skillpress export --format sharegpt``) is read as the rollout file that it came from: besides the
talk it has each turn's action as the environment read it, and whether it was refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.environments.calls.steps import TraceStep, acted
from skillpress.logs.chat import trace_of, whole_call
from skillpress.logs.conversation import read_conversation
from skillpress.logs.rollouts import own_trace
from skillpress.logs.trace import Trace, UnreadableTraceError

OURS = {"group_id", "rollout_index", "policy_version", "won", "actions", "refused"}
"""Fields that occur together only in our own export."""


def recognises(record: Any) -> bool:
    """Whether the record has a list of turns with a speaker each."""
    return _turns(record) is not None


def read(record: Any) -> Trace:
    """The trace of a talk.

    Raises:
        UnreadableTraceError: a turn cannot be read.
    """
    turns = _turns(record)
    if turns is None:
        raise UnreadableTraceError("the record has no list of turns")
    if isinstance(record, dict) and record.keys() >= OURS:
        return own_trace(record, _acted(record, turns))
    line = record if isinstance(record, dict) else {}
    system = line.get("system")
    before = [{"from": "system", "value": system}] if isinstance(system, str) and system else []
    found = read_conversation([*before, *turns], tools=bool(line.get("tools")))
    return trace_of(line, found, whole_call(line, found, True))


def _turns(record: Any) -> list[Any] | None:
    held = record.get("conversations", record.get("conversation")) if isinstance(record, dict) else record
    if not isinstance(held, list) or not held or not isinstance(held[0], dict):
        return None
    return held if isinstance(held[0].get("from"), str) and "value" in held[0] else None


def _acted(record: Mapping[str, Any], turns: list[Any]) -> Iterator[TraceStep]:
    """The steps of our export. The environment's last observation has no turn."""
    heard = [turn["value"] for turn in turns if turn["from"] == "human"]
    for number, (action, refused) in enumerate(zip(record["actions"], record["refused"], strict=True), 1):
        yield from acted(action, heard[number] if number < len(heard) else "", bool(refused))
