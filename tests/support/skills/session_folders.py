"""The session folders of three agents in a home folder, made by hand after their formats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.skills.scripted_sessions import Session, claude_code_lines, write_sessions


def write_home(home: Path, played: Sequence[Session]) -> None:
    """A third of the sessions each for Claude Code, Codex and OpenHands. Every fifth session of the first two
    was also forked: the fork begins with a copy and runs one command more."""
    bye = Session("", "", (("echo", "echo bye"),), True)
    for number, session in enumerate(played):
        name, folder = f"5e55-{number:04d}", number % 3
        if folder == 0:
            place, own = home / ".claude" / "projects" / "-home-me-app", claude_code_lines(session, name)
            fork = claude_code_lines(bye, f"f{name}", own)
        elif folder == 1:
            place, own = home / ".codex" / "sessions" / "2026" / "11" / "28", codex_lines(session, name)
            fork = codex_lines(bye, f"f{name}", own)
            name = f"rollout-2026-11-28T10-00-00-{name}"
        else:
            _write_openhands(home / ".openhands" / "conversations" / name, session)
            continue
        place.mkdir(parents=True, exist_ok=True)
        write_sessions(place / f"{name}.jsonl", own)
        if number % 5 == 0:
            write_sessions(place / f"{name}-fork.jsonl", fork)


def codex_lines(session: Session, name: str, copied: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """A session as Codex's lines; ``copied`` are those of the session that it was forked from."""
    meta = {"id": name, "cli_version": "0.171.0", "cwd": "/home/me/app"}
    if copied:
        meta["forked_from_id"] = copied[0]["payload"]["id"]
    lines = [{"type": "session_meta", "payload": meta}, *copied[1:]]
    if not copied:
        context = "<environment_context>\n  <cwd>/home/me/app</cwd>\n</environment_context>"
        for text in (context, session.message):
            said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            lines.append({"type": "response_item", "payload": said})
    for number, (_, command) in enumerate(session.commands):
        call = {"type": "function_call", "name": "exec_command", "call_id": f"{name}-{number}"}
        answer = {"type": "function_call_output", "call_id": f"{name}-{number}", "output": "done"}
        lines.append(
            {"type": "response_item", "payload": {**call, "arguments": json.dumps({"cmd": command})}}
        )
        lines.append({"type": "response_item", "payload": answer})
    lines.append({"type": "token_usage_record", "payload": {"usage": {"input_tokens": 1}}})
    return [{"timestamp": "2026-11-28T10:00:00Z", "ordinal": n, **line} for n, line in enumerate(lines)]


def _write_openhands(conversation: Path, session: Session) -> None:
    """A conversation of OpenHands: a file for each event, and the state beside them."""
    said = {"role": "user", "content": [{"type": "text", "text": session.message}]}
    events: list[dict[str, Any]] = [
        {"kind": "SystemPromptEvent", "source": "agent", "tools": []},
        {"kind": "MessageEvent", "source": "user", "llm_message": said},
    ]
    for number, (_, command) in enumerate(session.commands):
        call = {"id": f"c{number}", "name": "terminal", "arguments": json.dumps({"command": command})}
        named = {"tool_name": "terminal", "tool_call_id": f"c{number}"}
        action, answer = {"kind": "TerminalAction", "command": command}, [{"type": "text", "text": "done"}]
        asked = {"kind": "ActionEvent", "source": "agent", **named, "tool_call": call, "action": action}
        seen = {"kind": "TerminalObservation", "content": answer}
        told = {"kind": "ObservationEvent", "source": "environment", **named, "observation": seen}
        events += [{**asked, "thought": []}, {**told, "action_id": f"e{len(events)}"}]
    folder = conversation / "events"
    folder.mkdir(parents=True)
    (conversation / "base_state.json").write_text('{"id": "x", "agent": {"kind": "Agent"}, "stats": {}}')
    (folder / ".eventlog.lock").write_text("")
    for number, event in enumerate(events):
        whole = {"id": f"e{number}", "timestamp": f"2026-11-28T10:00:{number % 60:02d}", **event}
        (folder / f"event-{number:05d}-e{number}.json").write_text(json.dumps(whole))
