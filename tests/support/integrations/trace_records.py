"""One record of every format, written by hand: a run that searches, edits and tests."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

_SESSIONS = count(1)


def atif(**changes: Any) -> dict[str, Any]:
    """A record of ATIF 1.7, as in its specification; each has a session of its own."""
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": f"session-{next(_SESSIONS)}",
        "trajectory_id": "run-1/main",
        "agent": {"name": "mender", "version": "2.1", "model_name": "small"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Mend gcd.", "timestamp": "2026-03-01T10:00:00Z"},
            {"step_id": 2, "source": "agent", "message": "", "is_copied_context": True,
             "tool_calls": [{"tool_call_id": "0", "function_name": "old", "arguments": {}}]},
            {"step_id": 3, "source": "agent", "message": "Look.", "tool_calls": [
                {"tool_call_id": "a", "function_name": "search", "arguments": {"text": "gcd"}},
                {"tool_call_id": "b", "function_name": "edit", "arguments": {"path": "gcd.py", "line": 3}}],
             "observation": {"results": [{"source_call_id": "b", "content": "edited"},
                                         {"source_call_id": "a", "content": "gcd.py:1"}]}},
            {"step_id": 4, "source": "system", "message": "Hurry."},
            {"step_id": 5, "source": "agent", "message": "Done.", "tool_calls": [
                {"tool_call_id": "c", "function_name": "test", "arguments": {}}],
             "observation": {"results": [{"content": [{"type": "text", "text": "3 passed"}]}]}},
            {"step_id": 6, "source": "agent", "message": "It is mended."},
        ],
        "extra": {"verifier": {"reward": 1.0}},
        "subagent_trajectories": [{"schema_version": "ATIF-v1.7", "trajectory_id": "helper", "steps": []}],
        **changes,
    }  # fmt: skip


def chat(**changes: Any) -> dict[str, Any]:
    """A line of a chat completions log."""

    def call(number: str, name: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": number, "type": "function", "function": function}

    return {
        "id": "run-1", "task_id": "gcd", "model": "small", "created": 1700000000, "solved": True,
        "messages": [
            {"role": "system", "content": "You mend programs."},
            {"role": "user", "content": "Mend gcd."},
            {"role": "assistant", "content": None,
             "tool_calls": [call("a", "search", text="gcd"), call("b", "edit", path="gcd.py", line=3)]},
            {"role": "tool", "tool_call_id": "b", "content": "edited"},
            {"role": "tool", "tool_call_id": "a", "content": "gcd.py:1"},
            {"role": "assistant", "content": "", "tool_calls": [call("c", "test")]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "3 passed"}]},
            {"role": "assistant", "content": "It is mended."},
        ],
        **changes,
    }  # fmt: skip


def mlflow_trace(**changes: Any) -> dict[str, Any]:
    """A trace of MLflow 3, as ``Trace.to_dict`` returns it."""

    def span(name: str, kind: str, start: int, inputs: Any, outputs: Any, **more: Any) -> dict[str, Any]:
        attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
        return {
            "trace_id": "x", "span_id": f"{name}-{start}", "parent_span_id": "agent-0", "name": name,
            "start_time_unix_nano": start, "end_time_unix_nano": start + 1, "events": [],
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "attributes": {key: json.dumps(value) for key, value in attributes.items()}, **more,
        }  # fmt: skip

    broken = {"status": {"code": "STATUS_CODE_ERROR", "message": "no such line"}}
    return {
        "info": {
            "trace_id": "tr-1", "request_time": "2026-03-01T10:00:00.000Z", "state": "OK",
            "trace_metadata": {"mlflow.trace.session": "gcd", "mlflow.modelId": "m-1"},
            "tags": {"mlflow.traceName": "agent", "team": "red"},
            "assessments": [
                {"assessment_name": "mended", "feedback": {"value": False}, "valid": False},
                {"assessment_name": "mended", "feedback": {"value": True}, "valid": True},
            ],
        },
        "data": {"spans": [
            span("agent", "AGENT", 0, {"task": "gcd"}, "done", parent_span_id=None),
            span("test", "TOOL", 9, {}, "3 passed"),
            span("model", "CHAT_MODEL", 1, {"messages": []},
                 {"choices": [{"message": {"role": "assistant", "content": "Look."}}]}),
            span("search", "TOOL", 2, {"text": "gcd"}, "gcd.py:1"),
            span("grep", "TOOL", 3, {"text": "gcd"}, "gcd.py:1", parent_span_id="search-2"),
            span("edit", "TOOL", 5, {"path": "gcd.py", "line": 3}, None, **broken),
        ]},
        **changes,
    }  # fmt: skip


def our_atif() -> dict[str, Any]:
    """One of our rollouts as ``skillpress export --format atif`` writes it: an edit, a refusal, a summary."""

    def step(number: int, action: str, said: str, **extra: Any) -> dict[str, Any]:
        call = {"tool_call_id": str(number), "function_name": "act", "arguments": {"action": action}}
        result = {"content": said, **({"source_call_id": str(number)} if action else {})}
        return {
            "step_id": number,
            "source": "agent",
            "message": "...",
            **({"tool_calls": [call]} if action else {}),
            "observation": {"results": [result]},
            "extra": {"reward": 0.0, "reward_parts": [], **extra},
        }

    summed_up = {"step_id": 4, "source": "agent", "message": "so far", "extra": {"summary": True}}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "g/0",
        "trajectory_id": "g/0",
        "agent": {"name": "skillpress", "version": "0.1.0", "model_name": "start"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "A program."},
            step(2, '{"tool": "edit", "command": "view"}', "1: def"),
            step(3, "", "What?", invalid="missing_action"),
            summed_up,
            step(5, "look", "Nothing.", invalid="no_such_action"),
        ],
        "extra": {
            "task_id": "t",
            "group_id": "g",
            "rollout_index": 0,
            "policy": "start",
            "policy_version": 3,
            "won": True,
            "outcome": "won",
        },
    }


def our_mlflow_trace() -> dict[str, Any]:
    """The same rollout as the experiment's stages log it to MLflow."""

    def span(name: str, kind: str, start: int, **attributes: Any) -> dict[str, Any]:
        return {
            "span_id": f"{name}-{start}",
            "name": name,
            "start_time_unix_nano": start,
            "status": {"code": "STATUS_CODE_OK"},
            "attributes": {
                key: json.dumps(value) for key, value in {"mlflow.spanType": kind, **attributes}.items()
            },
        }

    def acts(start: int, action: str, said: str) -> dict[str, Any]:
        put = {"mlflow.spanInputs": {"action": action}, "mlflow.spanOutputs": {"observation": said}}
        return span("act", "TOOL", start, **put)

    tags = {"group_id": "g", "rollout_index": "0", "policy": "start", "policy_version": "3", "won": "true"}
    return {
        "info": {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "t"}, "tags": tags},
        "data": {
            "spans": [
                span("episode", "AGENT", 0),
                span("decision 0", "CHAT_MODEL", 0, invalid=None, summary=False),
                acts(5, '{"tool": "edit", "command": "view"}', "1: def"),
                span("decision 1", "CHAT_MODEL", 10, invalid="missing_action", summary=False),
                span("decision 2", "CHAT_MODEL", 20, invalid=None, summary=True),
                span("decision 3", "CHAT_MODEL", 30, invalid="no_such_action", summary=False),
                acts(35, "look", "Nothing."),
            ]
        },
    }
