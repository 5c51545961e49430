"""OpenHands: the events of a conversation, in the form of version 0 and of the software-agent SDK.

An event of the agent with an action is a step, and the event that names it as its cause is the answer. A
list of events is a run; so is the record of an evaluation with the list under ``history`` (its report says
whether the issue was resolved), and a file with an event on each line. The logged completions (``messages``
and ``response``) are model calls: if the model knew its tools from a prompt alone, the messages with the
calls are in ``fncall_messages``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.environments.calls.steps import TraceStep, json_or, text_of
from skillpress.logs import chat
from skillpress.logs.chat import first_text
from skillpress.logs.fields import dig, first_time
from skillpress.logs.outcome import outcome_at
from skillpress.logs.trace import Trace, UnreadableTraceError

_OUTCOMES = (
    "resolved",
    "test_result.report.resolved",
    "report.resolved",
    "test_result.resolved",
    "test_result.result.resolved",
    "test_result.score",
    "test_result.result",
)
_LISTS = ("history", "events", "trajectory")
_NOT_ACTIONS = frozenset(
    ["system", "recall", "change_agent_state", "condensation", "condensation_request", "null", "start",
     "pause", "resume", "stop", "push", "send_pr", "loop_recovery"]
)  # fmt: skip
"""Actions with which the program controls itself."""
_NOT_ARGUMENTS = frozenset(
    [
        "thought",
        "is_confirmed",
        "confirmation_state",
        "security_risk",
        "hidden",
        "blocking",
        "impl_source",
        "agent_state",
    ]
)
_SOURCES = ("agent", "user", "environment")


def recognises(record: Any) -> bool:
    """Whether the record is a list of events, or has one, or is a logged completion."""
    return bool(_events(record)) or _is_completion(record)


def run_of(record: Any) -> str | None:
    """Events on lines of their own are the run of their file; None if the record is not an event."""
    return "" if is_event(record) else None


def read(record: Any) -> Trace:
    """The trace of a conversation.

    Raises:
        UnreadableTraceError: an action cannot be read.
    """
    if _is_completion(record):
        return chat.read(_completion(record))
    events = _events(record)
    if not events:
        raise UnreadableTraceError("the record has no list of events")
    whole = record if isinstance(record, dict) else {}
    steps = tuple(_steps(events))
    if not steps and any(event.get("source") == "agent" for event in events):
        raise UnreadableTraceError("none of the agent's events is a known action")
    ended = outcome_at(whole, _OUTCOMES)
    return Trace(
        first_text(whole, ("id", "instance_id", "conversation_id")),
        steps,
        task=first_text(whole, ("instance_id", "task_id")),
        version=str(dig(whole, "metadata.llm_config.model") or dig(whole, "metadata.agent_class") or "")[
            :200
        ],
        time=first_time(event.get("timestamp") for event in events),
        **ended._asdict(),
    )


def is_event(value: Any) -> bool:
    """Whether a value is an event of either form."""
    if not isinstance(value, dict) or value.get("source") not in _SOURCES:
        return False
    if isinstance(value.get("kind"), str):
        return "timestamp" in value or "id" in value
    named = isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)
    return named and bool({"args", "extras", "cause", "content", "message"} & value.keys())


def _events(record: Any) -> list[Any]:
    """The events of a record, in order; none if it is something else."""
    if isinstance(record, dict):
        held = [record[key] for key in _LISTS if isinstance(record.get(key), list)]
        return next((events for each in held if (events := _events(each))), [])
    if not isinstance(record, list) or not record:
        return []
    if all(isinstance(pair, list) for pair in record):  # older evaluations: pairs of action and observation
        record = [event for pair in record for event in pair]
    return record if record and all(map(is_event, record)) else []


def _is_completion(record: Any) -> bool:
    if not isinstance(record, dict) or "response" not in record:
        return False
    known = {"fncall_messages", "fncall_response"} & record.keys() or {"cost", "timestamp"} <= record.keys()
    return bool(known) and chat.recognises(record)


def _completion(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A logged completion with the messages that hold calls as calls."""
    if chat.messages_in(record.get("fncall_messages")) is None:
        return record
    response = record.get("fncall_response") or record["response"]
    return {**record, "messages": record["fncall_messages"], "response": response}


def _steps(events: Sequence[Any]) -> Iterator[TraceStep]:
    causes, answers = {}, {}
    for event in events:
        if "observation" in event or str(event.get("kind")).endswith(
            ("ObservationEvent", "ErrorEvent", "Observation")
        ):
            if event.get("cause") is not None:
                causes[_key(event["cause"])] = event
            if event.get("tool_call_id") is not None:
                answers[_key(event["tool_call_id"])] = event
    for event in events:
        if event["source"] != "agent":
            continue
        if isinstance(event.get("kind"), str):
            yield from _of_sdk(event, answers)
        elif isinstance(event.get("action"), str) and event["action"] not in _NOT_ACTIONS:
            yield _of_version_0(event, causes.get(_key(event.get("id"))))


def _of_sdk(event: Mapping[str, Any], answers: Mapping[Any, Any]) -> Iterator[TraceStep]:
    if event["kind"] == "ActionEvent":
        call = event.get("tool_call")
        action = event.get("action")
        arguments = call.get("arguments") if isinstance(call, dict) else None
        if arguments is None and isinstance(action, dict):
            arguments = {name: value for name, value in action.items() if name != "kind"}
        answer = answers.get(_key(event.get("tool_call_id"))) or {}
        failed = "Error" in str(answer.get("kind")) or "Reject" in str(answer.get("kind"))
        failed = failed or dig(answer, "observation.is_error") is True
        said = answer.get("observation") or answer.get("error") or answer.get("rejection_reason") or ""
        content = said.get("content", said) if isinstance(said, dict) else said
        yield TraceStep(_name(event.get("tool_name")), arguments, content, failed)
    elif event["kind"] == "MessageEvent":
        yield TraceStep(None, text_of(dig(event, "llm_message.content")))


def _of_version_0(event: Mapping[str, Any], answer: Mapping[str, Any] | None) -> TraceStep:
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    said = "" if answer is None else answer.get("content", "")
    failed = answer is not None and answer.get("observation") in ("error", "user_rejected")
    if event["action"] == "message":
        return TraceStep(None, args.get("content", event.get("message")), said, failed)
    called = event.get("tool_call_metadata")
    called = called if isinstance(called, dict) else {}
    arguments = _arguments(called)
    if arguments is None:
        arguments = {
            name: value for name, value in args.items() if name not in _NOT_ARGUMENTS and value is not None
        }
    tool = (
        _name(called.get("function_name")) or _name(args.get("name"))
        if event["action"] == "call_tool_mcp"
        else ""
    )
    return TraceStep(tool or _name(called.get("function_name")) or event["action"], arguments, said, failed)


def _arguments(called: Mapping[str, Any]) -> Any:
    """The arguments as the model gave them; None if the log does not hold its answer."""
    calls = dig(called, "model_response.choices.0.message.tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and call.get("id") == called.get("tool_call_id"):
            given = dig(call, "function.arguments")
            return json_or(given, given) if isinstance(given, str) else given
    return None


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int) else None
