"""Run states of OpenAI's agents SDK, as ``RunState.to_json`` writes them (Python and JavaScript).

The original input and the generated items are a conversation in items of the responses API. A hand-over to
another agent is a call, too. The state does not say whether the run was a success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skillpress.logs.chat import trace_of
from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig
from skillpress.logs.trace import Trace, UnreadableTraceError

_ITEMS = (("generated_items", "session_items"), ("generatedItems", "sessionItems"))


def recognises(record: Any) -> bool:
    """Whether the record is a run state."""
    return isinstance(record, dict) and "$schemaVersion" in record and _generated(record) is not None


def read(record: Any) -> Trace:
    """The trace of a run state.

    Raises:
        UnreadableTraceError: an item cannot be read.
    """
    given = record.get("original_input", record.get("originalInput"))
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if asked is not None and not isinstance(asked, list):
        raise UnreadableTraceError(f"the original input is a {type(asked).__name__}, not a text or a list")
    items = [_raw(item) for item in _generated(record) or []]
    trace = trace_of({}, read_conversation([*(asked or []), *items]))
    agent = dig(record, "current_agent.name") or dig(record, "currentAgent.name")
    name = record.get("conversation_id") or record.get("conversationId")
    return replace(trace, name=str(name or "")[:200], version=str(agent or "")[:200])


def _generated(record: Mapping[str, Any]) -> list[Any] | None:
    """The items that the run generated. A hand-over may shorten the list that the next agent sees."""
    for names in _ITEMS:
        held: list[list[Any]] = [record[name] for name in names if isinstance(record.get(name), list)]
        if held:
            return max(held, key=_length)
    return None


def _length(items: list[Any]) -> int:
    return len(items)


def _raw(item: Any) -> Any:
    """An item as the responses API has it."""
    if not isinstance(item, dict):
        raise UnreadableTraceError(f"an item is a {type(item).__name__}, not an object")
    raw = item.get("raw_item", item.get("rawItem"))
    if not isinstance(raw, dict):
        raise UnreadableTraceError(f"an item has no raw item; its keys are {', '.join(map(str, item))[:120]}")
    if "output" not in raw and str(item.get("type")).endswith("_output_item") and "output" in item:
        return {**raw, "output": item["output"]}
    return raw
