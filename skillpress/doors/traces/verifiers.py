"""Results of verifiers: ``prompt``, ``completion`` and ``reward``; or the message graph of its version 1.

Only the completion is the agent's: turns of an assistant in the prompt are examples. In version 1 every
message is a node, and ``sampled`` says which of them a model call gave. The rewards of version 1 are added
up by their weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skillpress.doors.traces.chat import dialogue_of, messages_in, trace_of
from skillpress.doors.traces.conversation import Conversation, read_conversation
from skillpress.doors.traces.fields import dig
from skillpress.doors.traces.messages import speaker_of
from skillpress.doors.traces.outcome import Outcome, outcome_at, outcome_of
from skillpress.doors.traces.trace import Trace, UnreadableTraceError

PROMPT = "steps of the prompt"
_BESIDE = {"reward", "example_id", "metrics", "is_completed", "is_truncated", "answer", "task"}


def recognises(record: Any) -> bool:
    """Whether the record has a prompt, a completion of messages and what verifiers writes beside them."""
    if not isinstance(record, dict):
        return False
    if _nodes(record) is not None:
        return True
    return (
        "prompt" in record
        and messages_in(record.get("completion")) is not None
        and bool(_BESIDE & record.keys())
    )


def read(record: Any) -> Trace:
    """The trace of a rollout.

    Raises:
        UnreadableTraceError: a message cannot be read.
    """
    nodes = _nodes(record)
    if nodes is not None:
        return _graph(record, nodes)
    prompt = messages_in(record["prompt"])
    if prompt is None:
        prompt = [] if record["prompt"] is None else [{"role": "user", "content": str(record["prompt"])}]
    found = completed(prompt, messages_in(record["completion"]) or [])
    ended = outcome_at(record, ("reward",))
    trace = trace_of(record, found)
    task = trace.task or _text(record.get("task"))
    return replace(trace, task=task, **ended._asdict())


def completed(prompt: list[Any], completion: list[Any]) -> Conversation:
    """The steps of a completion. Steps in the prompt are left out."""
    if not completion:
        return Conversation()
    found = read_conversation(prompt, completion)
    if not found.earlier:
        return found
    left_out = Counter(found.left_out) + Counter({PROMPT: found.earlier})
    return replace(
        found, steps=found.steps[found.earlier :], earlier=0, left_out=dict(left_out), shown=found.asked
    )


def _nodes(record: Mapping[str, Any]) -> list[Any] | None:
    nodes = record.get("nodes")
    if not isinstance(nodes, list) or not nodes or not isinstance(nodes[0], dict):
        return None
    return nodes if "message" in nodes[0] and "task" in record else None


def _graph(record: Mapping[str, Any], nodes: list[Any]) -> Trace:
    messages, examples = [], 0
    for node in nodes:
        message = node.get("message") if isinstance(node, dict) else None
        if not isinstance(message, dict):
            raise UnreadableTraceError("a node without a message")
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


def _rewarded(rewards: Any) -> Outcome:
    """The sum of weighted rewards; unknown if none was given."""
    if not isinstance(rewards, dict):
        return Outcome()
    given = [
        (each["score"], each.get("weight", 1.0))
        for each in rewards.values()
        if isinstance(each, dict) and isinstance(each.get("score"), int | float)
    ]
    return outcome_of("rewards", sum(score * weight for score, weight in given)) if given else Outcome()


def _text(value: Any) -> str:
    return str(value)[:200] if isinstance(value, str | int) else ""
