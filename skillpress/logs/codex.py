"""Sessions of the Codex command line: a line for each item, with ``type``, ``payload`` and ``timestamp``.

The lines of type ``response_item`` hold the items of the responses API in the order in which they came. The
other lines repeat them for the screen, or hold settings. A session that was forked (``forked_from_id``)
begins with a copy of the other one's items.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig, dig_lines, seconds
from skillpress.logs.trace import Dialogue, NothingSaidError, Trace

field = dig_lines
_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_LINE = frozenset(["ordinal", "payload", "timestamp", "type"])
"""The keys of a line. Newer versions have further kinds of lines."""


def run_of(record: Any) -> str | None:
    """Empty for a line of a session, which has a file of its own; None for any other record."""
    named = isinstance(record, dict) and (record.get("type") in _KINDS or record.keys() == _LINE)
    return "" if named and isinstance(record.get("payload"), dict) else None


def read(record: Any) -> Trace:
    """The trace of a session.

    Raises:
        UnreadableTraceError: an item cannot be read.
        NothingSaidError: there is none.
    """
    items = [line["payload"] for line in record if line["type"] == "response_item"]
    items = [item for item in items if item.get("type") not in ("ghost_snapshot", "other")]
    if not items:
        raise NothingSaidError("the session has no items")
    found = read_conversation(items)
    return Trace(
        str(field(record, "payload.id") or "")[:200],
        found.steps,
        version=str(field(record, "payload.model") or field(record, "payload.cli_version") or "")[:200],
        time=seconds(record[0].get("timestamp")),
        left_out=found.left_out,
        dialogue=Dialogue(found.turns),
    )


def own(lines: Sequence[Any], earlier: dict[str, Any]) -> list[int]:
    """The positions of the lines that are not copied from an earlier session.

    Args:
        earlier: hashes of the items of the sessions before; those of this one are added.
    """
    items = {place: _hash(line) for place, line in enumerate(lines) if line["type"] == "response_item"}
    copied: set[int] = set()
    for (place, item), other in zip(
        items.items(), earlier.get(_told(lines, "forked_from_id"), ()), strict=False
    ):
        if item != other:
            break
        copied.add(place)
    if name := _told(lines, "id"):
        earlier[name] = tuple(items.values())
    return [place for place in range(len(lines)) if place not in copied]


def _told(lines: Sequence[Any], name: str) -> str:
    """The session's description of itself in its first line."""
    value = dig(lines[0], f"payload.{name}") if lines[0]["type"] == "session_meta" else None
    return value if isinstance(value, str) else ""


def _hash(line: Any) -> int:
    return hash(json.dumps(line["payload"], sort_keys=True))
