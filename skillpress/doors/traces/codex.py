"""Sessions of the Codex command line: a line for each item, with ``type``, ``payload`` and ``timestamp``.

The lines of type ``response_item`` hold the items of the responses API in the order in which they came. The
other lines repeat them for the screen, or hold settings.
"""

from __future__ import annotations

from typing import Any

from skillpress.doors.traces.conversation import read_conversation
from skillpress.doors.traces.fields import dig_lines, seconds
from skillpress.doors.traces.trace import Dialogue, Trace, UnreadableTraceError

field = dig_lines
_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def run_of(record: Any) -> str | None:
    """Empty for a line of a session, which has a file of its own; None for any other record."""
    named = isinstance(record, dict) and record.get("type") in _KINDS
    return "" if named and isinstance(record.get("payload"), dict) else None


def read(record: Any) -> Trace:
    """The trace of a session.

    Raises:
        UnreadableTraceError: it has no item, or one that cannot be read.
    """
    items = [line["payload"] for line in record if line["type"] == "response_item"]
    items = [item for item in items if item.get("type") not in ("ghost_snapshot", "other")]
    if not items:
        raise UnreadableTraceError("a session without items")
    found = read_conversation(items)
    return Trace(
        str(field(record, "payload.id") or "")[:200],
        found.steps,
        version=str(field(record, "payload.model") or field(record, "payload.cli_version") or "")[:200],
        time=seconds(record[0].get("timestamp")),
        left_out=found.left_out,
        dialogue=Dialogue(found.turns),
    )
