"""The message graph of verifiers' version 1; ``known_paths.py`` has its other results.

Every message is a node, and ``sampled`` says which of them a model call produced: other turns of an assistant
are examples. The rewards are added up by their weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillpress.logs.chat import dialogue_of
from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig
from skillpress.logs.messages import speaker_of
from skillpress.logs.outcome import FoundOutcome, outcome_of
from skillpress.logs.trace import Trace, UnreadableTraceError


def recognises(record: Any) -> bool:
    """Whether the record is a graph of messages with its task."""
    return isinstance(record, dict) and _nodes(record) is not None


def _nodes(record: Mapping[str, Any]) -> list[Any] | None:
    nodes = record.get("nodes")
    if not isinstance(nodes, list) or not nodes or not isinstance(nodes[0], dict):
        return None
    return nodes if "message" in nodes[0] and "task" in record else None


def read(record: Any) -> Trace:
    """The trace of a rollout.

    Raises:
        UnreadableTraceError: a message cannot be read.
    """
    messages, examples = [], 0
    for node in _nodes(record) or ():
        message = node.get("message") if isinstance(node, dict) else None
        if not isinstance(message, dict):
            raise UnreadableTraceError("a node has no message")
        if speaker_of(message) == "assistant" and node.get("sampled") is False:
            examples += 1
        else:
            messages.append(message)
    found = read_conversation(messages)
    ended = _rewarded(record.get("rewards"))
    calls = record.get("calls")
    model = dig(calls, "0.model") if isinstance(calls, list) else None
    return Trace(
        _text(record.get("id")),
        found.steps,
        task=_text(dig(record, "task.key") or dig(record, "task.hash") or dig(record, "task.type")),
        version=_text(model),
        left_out=found.left_out | ({"turns of the prompt": examples} if examples else {}),
        dialogue=dialogue_of(found, record),
        **ended._asdict(),
    )


def _rewarded(rewards: Any) -> FoundOutcome:
    """The sum of weighted rewards; unknown if none was given."""
    if not isinstance(rewards, dict):
        return FoundOutcome()
    given = [
        (each["score"], each.get("weight", 1.0))
        for each in rewards.values()
        if isinstance(each, dict) and isinstance(each.get("score"), int | float)
    ]
    return outcome_of("rewards", sum(score * weight for score, weight in given)) if given else FoundOutcome()


def _text(value: Any) -> str:
    return str(value)[:200] if isinstance(value, str | int) else ""
