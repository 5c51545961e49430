"""Sessions of Claude Code: a line for each message, with ``type``, ``message`` and ``sessionId``.

A session that was resumed or forked from an earlier one begins with a copy of that one's lines, which keep
their ``uuid``. Copies count in the session that is read first.

One answer of the model is spread over several lines with the same message id. Lines of a side chain belong
to a sub-agent: its run is counted and left out. Lines without a message (titles, snapshots, progress) say
nothing. The stream that ``--output-format stream-json`` prints is read too; its last line says how the
session ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.logs.atif import SUB_AGENTS
from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig, dig_lines, first_time
from skillpress.logs.outcome import FoundOutcome, candidates_of, decided
from skillpress.logs.trace import Dialogue, NothingSaidError, Trace, UnreadableTraceError

field = dig_lines
_MESSAGES = ("user", "assistant")
_ENVELOPE = ("uuid", "sessionId", "session_id", "parentUuid", "leafUuid")
_OTHERS = frozenset(
    ["system", "summary", "result", "progress", "attachment", "file-history-snapshot", "queue-operation",
     "ai-title", "custom-title", "last-prompt", "permission-mode", "mode", "agent-name", "tag", "pr-link",
     "stream_event", "agent-setting", "rate_limit_event", "hook_event", "worktree-state",
     "saved_hook_context"]
)  # fmt: skip


def run_of(record: Any) -> str | None:
    """The session of a line, empty if it names none; None if the record is not a line of a session."""
    if not isinstance(record, dict):
        return None
    kind = record.get("type")
    is_message = kind in _MESSAGES and isinstance(record.get("message"), dict)
    is_other = isinstance(kind, str) and kind in _OTHERS
    if not (is_message or is_other) or not any(
        key in record for key in (*_ENVELOPE, "messageId", "snapshot")
    ):
        return None
    return str(record.get("sessionId") or record.get("session_id") or "")


def read(record: Any) -> Trace:
    """The trace of a session.

    Raises:
        UnreadableTraceError: a message cannot be read, or only a sub-agent took part.
    """
    lines = list(_once(record))
    aside = [line for line in lines if line.get("isSidechain") is True or line.get("parent_tool_use_id")]
    ours = [line for line in lines if line.get("type") in _MESSAGES and line not in aside]
    if aside and not ours:
        raise UnreadableTraceError("all lines are a sub-agent's; the session's run is read from its own file")
    if all(line.get("type") != "assistant" for line in ours):
        raise NothingSaidError("the session has no answer of the agent")
    found = read_conversation(list(_messages(ours)))
    ended = _outcome(lines)
    models = (dig(line, "message.model") for line in ours)
    agents = {line.get("agentId") or line.get("parent_tool_use_id") for line in aside}
    agents |= {
        line.get("uuid") for line in aside if not line.get("parentUuid") and not line.get("agentId")
    } - {None}
    return Trace(
        next((key for line in lines if (key := run_of(line))), ""),
        found.steps,
        version=str(next(filter(None, models), ""))[:200],
        time=first_time(line.get("timestamp") for line in ours),
        left_out=found.left_out | ({SUB_AGENTS: max(1, len(agents - {None}))} if aside else {}),
        dialogue=Dialogue(found.turns),
        **ended._asdict(),
    )


def own(lines: Sequence[Any], earlier: dict[str, Any]) -> list[int]:
    """The positions of the lines that no session before had.

    Args:
        earlier: the uuids of the sessions before; those of this one are added.
    """
    seen: set[int] = earlier.setdefault("lines", set())
    names = [hash(line.get("uuid")) if isinstance(line.get("uuid"), str) else None for line in lines]
    found = [place for place, name in enumerate(names) if name not in seen]
    seen.update(name for name in names if name is not None)
    return found


def _once(lines: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The lines, each once: a resumed session begins with a copy of the earlier one."""
    seen: set[str] = set()
    for line in lines:
        name = line.get("uuid")
        if isinstance(name, str):
            if name in seen:
                continue
            seen.add(name)
        yield line


def _messages(lines: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """The messages; the lines of one answer become one message."""
    held: dict[str, Any] | None = None
    for line in lines:
        message = line["message"]
        if line.get("isMeta") is True or line.get("isApiErrorMessage") is True:
            continue
        message = {"role": line["type"], **message}
        parts = _parts(message.get("content"))
        same = held is not None and message.get("id") is not None and message["id"] == held.get("id")
        if held is not None and same:
            held["content"] = [*held["content"], *parts]
            continue
        if held is not None:
            yield held
        held = {**message, "content": parts}
    if held is not None:
        yield held


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise UnreadableTraceError(f"a message's content is a {type(content).__name__}, not a text or a list")
    return content


def _outcome(lines: Sequence[Mapping[str, Any]]) -> FoundOutcome:
    """What the last line of a printed stream says: how the session ended, which is not yet success."""
    for line in reversed(lines):
        if line.get("type") == "result" and isinstance(line.get("subtype"), str):
            return decided(candidates_of([("subtype", line["subtype"]), ("is_error", line.get("is_error"))]))
    return FoundOutcome()
