"""Conversations and model calls, in the form of chat completions and of the responses API.

A record has its messages under ``messages`` (or ``input``, ``contents``), alone or inside ``request``. If it
also holds the model's answer (``response``, ``choices``, ``output``), or ends with a message of the
assistant, it may be one of many calls of a run, each with the whole history so far: ``Trace.call`` says what
the model was asked. The format has no field for the outcome, but a row may hold one (``resolved``,
``reward``, ``score``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.environments.calls.steps import json_or, unfolded
from skillpress.logs.conversation import LoggedConversation, hashes_of, read_conversation
from skillpress.logs.fields import first_time
from skillpress.logs.messages import is_message
from skillpress.logs.outcome import outcome_at
from skillpress.logs.trace import Dialogue, ModelCallPlace, Trace, UnreadableTraceError

_NAMES = ("id", "trace_id", "traj_id", "run_id", "session_id", "conversation_id", "uuid", "custom_id")
_TASKS = ("task_id", "instance_id", "example_id", "problem_id", "task_name")
_TIMES = ("created", "created_at", "timestamp", "start_time", "startTime", "time")
SESSIONS = ("session_id", "sessionId", "conversation_id", "thread_id", "run_id", "trace_id", "episode_id")
_RUNS = (
    *(name for name in SESSIONS if name != "trace_id"), "trial_name", "trial_id", "trial", "rollout_id",
    "rollout_index", "traj_id", "trajectory_id", "sample_id",
)  # fmt: skip
"""Fields that name a run, in records that may be whole runs."""
_PARENTS = ("previous_response_id", "parent_call_id", "parent_id", "parent")
_ASKED = ("messages", "input", "contents", "message_list", "input_messages", "prompt")
_ANSWERS = ("response", "output", "completion", "answer_message", "output_messages", "response_message")
_INSIDE = ("request", "body", "kwargs", "payload")


def recognises(record: Any) -> bool:
    """Whether the record has a list of messages, or is one."""
    return _asked(record) is not None


def read(record: Any) -> Trace:
    """The trace of a conversation.

    Raises:
        UnreadableTraceError: a message cannot be read.
    """
    messages = _asked(record)
    if messages is None:
        raise UnreadableTraceError("the record has no list of messages")
    line = record if isinstance(record, dict) else {}
    given = list(_answered(line))
    found = read_conversation(
        messages, given, tools=bool(_anywhere(line, "tools") or _anywhere(line, "functions"))
    )
    return trace_of(line, found, _call(line, found, bool(given)))


def trace_of(line: Mapping[str, Any], found: LoggedConversation, call: ModelCallPlace | None = None) -> Trace:
    """The trace of a conversation, with what the record's usual fields say about it."""
    ended = outcome_at(line)
    return Trace(
        first_text(line, _NAMES),
        found.steps,
        task=first_text(line, _TASKS),
        version=str(_anywhere(line, "model") or _anywhere(line, "model_name") or "")[:200],
        time=first_time(_anywhere(line, key) for key in _TIMES),
        left_out=found.left_out,
        call=call,
        dialogue=dialogue_of(found, line),
        **ended._asdict(),
    )


def dialogue_of(found: LoggedConversation, line: Mapping[str, Any]) -> Dialogue | None:
    """The messages behind a conversation's steps, with the tools that the record lists; None if it has
    none."""
    tools = _anywhere(line, "tools") or _anywhere(line, "functions")
    listed = tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()
    return Dialogue(found.turns, listed, found.shown) if found.turns else None


def first_text(line: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first value that is not null, as text; empty if there is none."""
    return next((str(line[key])[:200] for key in keys if line.get(key) is not None), "")


def messages_in(value: Any) -> list[Any] | None:
    """A list of messages, as it is or as JSON text; None if the value is something else."""
    if isinstance(value, str) and value.lstrip()[:2] in ("[{", "[\n", "[ "):
        value = json_or(value)
    if not isinstance(value, list) or not value or not is_message(value[0]):
        return None
    return value


def _asked(record: Any) -> list[Any] | None:
    """The messages of a record."""
    if isinstance(record, list):
        return messages_in(record)
    if not isinstance(record, dict):
        return None
    for held in (record, *(record[key] for key in _INSIDE if isinstance(record.get(key), dict))):
        for key in _ASKED:
            if (messages := messages_in(held.get(key))) is not None:
                return messages
    return None


def _answered(line: Mapping[str, Any]) -> Iterator[Any]:
    """The model's answer, if the record keeps it apart from the messages."""
    if (messages := messages_of_answer(line)) is not None:
        yield from messages
        return
    for key in _ANSWERS:
        value = unfolded(line.get(key))
        if (messages := messages_of_answer(value)) is not None:
            yield from messages
            return
        if isinstance(value, str) and value:
            yield {"role": "assistant", "content": value}
            return


def messages_of_answer(value: Any) -> Sequence[Any] | None:
    """The messages in an answer of any API; None if it is not one."""
    if isinstance(value, list):
        return messages_in(value)
    if not isinstance(value, dict):
        return None
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message") or choices[0].get("delta")
        if isinstance(message, dict):
            return [{"role": "assistant", **message}]
        return [{"role": "assistant", "content": choices[0].get("text")}]
    candidates = value.get("candidates")  # Gemini
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        content = candidates[0].get("content")
        return [content] if isinstance(content, dict) else None
    for key in ("message", "body"):
        if isinstance(value.get(key), dict):
            return [value[key]] if is_message(value[key]) else messages_of_answer(value[key])
    if "output" in value and value.get("object") == "response":
        return messages_in(value["output"])
    if is_message(value) and "messages" not in value:
        return [value]
    return None


def _call(line: Mapping[str, Any], found: LoggedConversation, answered: bool) -> ModelCallPlace | None:
    """Where the record belongs in its run, if it is one call."""
    given = found.turns[found.asked :]
    if not given:
        return whole_call(line, found, only_named=True)
    if not answered:
        return whole_call(line, found)
    hashes = hashes_of(found.turns)
    response = line.get("response")
    own = response.get("id") if isinstance(response, dict) else None
    parents = (_anywhere(line, key) for key in _PARENTS)
    return ModelCallPlace(
        session=first_text(line, SESSIONS),
        history=hashes[: found.asked],
        parent=next((str(parent)[:200] for parent in parents if isinstance(parent, str | int)), ""),
        own=str(own)[:200] if own is not None else first_text(line, ("id",)),
        answer=hashes[found.asked] if len(given) == 1 else None,
        earlier=found.earlier,
    )


def whole_call(
    line: Mapping[str, Any], found: LoggedConversation, only_named: bool = False
) -> ModelCallPlace | None:
    """Where a record belongs in its run, if it keeps the answer among the messages; None without steps. It
    may also be a complete run, and runs of one task often begin alike. Its history is therefore the full
    record: only a record that begins with all of it, and names no other run, continues it.

    Args:
        only_named: whether a record that does not name its run is certainly a complete run.
    """
    named = any(isinstance(line.get(name), str | int) for name in _RUNS)
    if not found.steps or (only_named and not named):
        return None
    values = ((name, line.get(name)) for name in (*_RUNS, *_TASKS) if named)
    run = "\0".join(f"{name}={value}"[:200] for name, value in values if isinstance(value, str | int))
    return ModelCallPlace(run=run, history=hashes_of(found.turns), earlier=len(found.steps))


def _anywhere(line: Mapping[str, Any], key: str) -> Any:
    """A field of the record, or of the request or response inside it."""
    if (value := line.get(key)) is not None:
        return value
    for name in (*_INSIDE, "response"):
        held = line.get(name)
        if isinstance(held, dict) and (value := held.get(key)) is not None:
            return value
    return None
