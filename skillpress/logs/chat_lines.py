"""Plain lines of chat messages: each line is one message, and a file is one run.

Lines that name a session or a conversation are runs by its name.
"""

from __future__ import annotations

from typing import Any

from skillpress.core.chat_messages import ROLES
from skillpress.logs.chat import SESSIONS, first_text, trace_of
from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig_lines, either
from skillpress.logs.messages import speaker_of, unwrapped
from skillpress.logs.trace import Trace

_SAID = ("content", "value", "text", "parts", "tool_calls", "function_call")


def run_of(record: Any) -> str | None:
    """The run of a message; None if the record is not one."""
    if not isinstance(record, dict) or "messages" in record:
        return None
    speaker = speaker_of(unwrapped(record))
    if speaker is None or speaker.lower() not in ROLES or either(record, *_SAID) is None:
        return None
    return first_text(record, SESSIONS)


def read(record: Any) -> Trace:
    """The trace of a run.

    Raises:
        UnreadableTraceError: a message cannot be read, or none is an assistant's.
    """
    line = {key: held for each in reversed(record) for key, held in each.items() if key not in ("id", "uuid")}
    return trace_of(line, read_conversation(record))


field = dig_lines
