"""Messages of every dialect as turns.

A conversation is written in many ways: chat completions, the blocks of Anthropic's API, the items of the
responses API, parts (Gemini, OpenTelemetry, Bedrock, AI SDK), LangChain's classes, ShareGPT's speakers. Logs
mix them, so the keys of each message decide. A turn is the same for all dialects: who spoke, the words, the
tool calls, and the answers to earlier calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from skillpress.core.chat_messages import ROLES, WORDS, Role, holds_thought
from skillpress.environments.calls.steps import json_value, text_of
from skillpress.logs.fields import either
from skillpress.logs.trace import UnreadableTraceError

_OUTPUTS = ("_call_output", "_call_result")
_CALLERS = frozenset(["function_call", "tool_call", "tool_calls"])
"""Speakers of ShareGPT files whose entire text is a call."""
_WORDS = frozenset([*WORDS, "refusal", "summary_text"])
_SILENT = frozenset(
    ["image", "image_url", "input_image", "audio", "input_audio", "document", "file", "data", "step-start",
     "step-finish"]
)  # fmt: skip
"""Parts of a message that are neither words nor calls nor thoughts."""
_SILENT_ITEMS = frozenset(
    ["reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request",
     "mcp_approval_response", "context_compaction", "additional_tools"]
)  # fmt: skip
_NAMES = ("name", "toolName", "tool_name", "function_name", "tool")
_ARGUMENTS = ("arguments", "input", "args", "parameters", "kwargs", "action")
_IDENTITIES = ("id", "toolCallId", "tool_call_id", "toolUseId", "call_id")
_ANSWERED = ("tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "call_id", "id")
_ANSWERS = ("content", "output", "result", "response", "value")


class LoggedCall(NamedTuple):
    """One call of a tool."""

    identity: str
    """Empty if the log gives the call no id."""
    tool: str
    """Empty if the log names no tool."""
    arguments: Any


class CallResult(NamedTuple):
    """The answer to a call."""

    identity: str
    """The call's id; empty if the log does not say which call is answered."""
    tool: str
    content: Any
    failed: bool


CONTENT = ("content", "parts", "value", "text", "system_prompt")
"""The keys of a message that may hold its content."""


class LoggedMessage(NamedTuple):
    """One message."""

    role: Role | Literal["other"]
    words: Any
    """The message's text; None if it has none."""
    calls: tuple[LoggedCall, ...] = ()
    answers: tuple[CallResult, ...] = ()
    item: bool = False
    """Whether this is an item of the responses API. Items of one response follow one another."""


def turn_of(message: Any) -> LoggedMessage | None:
    """A message as a turn; None if it says nothing, as a reasoning item does.

    Raises:
        UnreadableTraceError: it is not a message.
    """
    if not isinstance(message, dict):
        raise UnreadableTraceError(f"a message has no role: it is a {type(message).__name__}, not an object")
    speaker = message.get("role")
    if not isinstance(speaker, str):
        message = unwrapped(message)
        speaker = speaker_of(message)
    kind = message.get("type")
    if speaker is None:
        if isinstance(kind, str) and _is_item(kind):
            return _item(kind, message)
        raise UnreadableTraceError(
            f"a message has no role; its keys are {', '.join(map(str, message))[:120]}"
        )
    role: Role | Literal["other"] = ROLES.get(speaker) or ROLES.get(speaker.lower()) or "other"
    if role == "other" and speaker.lower() in _CALLERS:
        return LoggedMessage(
            "assistant", None, calls=tuple(map(_call, _listed(either(message, "value", "content"))))
        )
    if role == "tool":
        return LoggedMessage("tool", None, calls=(), answers=tuple(_tool_answers(message)))
    words, calls, answers = _content(message)
    if role == "assistant":
        if not calls:
            calls = tuple(_called(message))
        if words is None and isinstance(message.get("refusal"), str):
            words = message["refusal"]
        return LoggedMessage(role, words, calls=calls, answers=answers, item=kind == "message")
    return LoggedMessage("tool" if answers and words is None else role, words, calls=(), answers=answers)


def unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Unpack a LangChain message from its serialised forms (``lc`` constructors, ``type`` and ``data``)."""
    if message.get("type") == "constructor" and isinstance(message.get("kwargs"), dict):
        names = message.get("id")
        name = str(names[-1]) if isinstance(names, list) and names else ""
        kind = name.removesuffix("Chunk").removesuffix("Message").lower() or "other"
        return {**message["kwargs"], "type": message["kwargs"].get("type") or kind}
    data = message.get("data")
    if isinstance(data, dict) and "content" in data and "role" not in message:
        return {**data, "type": message.get("type")}
    return message


def speaker_of(message: Mapping[str, Any]) -> str | None:
    """Who speaks, in the message's own word; None if it does not say."""
    for key in ("role", "from"):
        if isinstance(message.get(key), str):
            return str(message[key])
    author = message.get("author")
    if isinstance(author, dict) and isinstance(author.get("role"), str):
        return str(author["role"])
    kind = message.get("type")
    if isinstance(kind, str) and kind.lower() in ROLES and {"content", "value", "text"} & message.keys():
        return kind
    return None


def is_message(value: Any) -> bool:
    """Whether a value looks like a message of any dialect."""
    if not isinstance(value, dict):
        return False
    message = unwrapped(value)
    kind = message.get("type")
    if isinstance(kind, str) and _is_item(kind):
        return True
    return speaker_of(message) is not None or message.get("object") == "response"


def flattened(messages: Iterable[Any]) -> Iterator[Any]:
    """The messages, with the items of whole responses among them."""
    for message in messages:
        is_response = isinstance(message, dict) and message.get("object") == "response"
        if is_response and "role" not in message and isinstance(message.get("output"), list):
            yield from message["output"]
        else:
            yield message


def is_demonstration(message: Any) -> bool:
    """Whether a message is an example that was shown to the agent."""
    return isinstance(message, dict) and bool(
        message.get("is_demo") or message.get("message_type") == "demonstration"
    )


def _is_item(kind: str) -> bool:
    return kind in _SILENT_ITEMS or kind.endswith(("_call", *_OUTPUTS))


def _item(kind: str, item: Mapping[str, Any]) -> LoggedMessage | None:
    """An item of the responses API that has no role."""
    if kind in _SILENT_ITEMS:
        return None
    identity = _text(item, ("call_id", "callId", "id"))
    if kind.endswith(_OUTPUTS):
        failed = item.get("status") in ("incomplete", "failed")
        return LoggedMessage(
            "tool", None, calls=(), answers=(CallResult(identity, "", item.get("output"), failed),)
        )
    named = kind in ("function_call", "custom_tool_call", "mcp_call", "hosted_tool_call")
    if named and "name" not in item:
        raise UnreadableTraceError(f"a {kind} has no name; its keys are {', '.join(map(str, item))[:120]}")
    tool = _text(item, ("name",)) if named else kind.removesuffix("_call")
    arguments = either(item, *_ARGUMENTS, "code", "queries", "operation")
    call = LoggedCall(identity, tool, arguments)
    answers: tuple[CallResult, ...] = ()
    if (output := either(item, "output", "outputs", "results", "error")) is not None:  # tools of the server
        answers = (CallResult(identity, tool, output, item.get("error") is not None),)
    return LoggedMessage("assistant", None, calls=(call,), answers=answers, item=True)


def _content(message: Mapping[str, Any]) -> tuple[Any, tuple[LoggedCall, ...], tuple[CallResult, ...]]:
    """(words, calls, answers) of a message's content."""
    content = either(message, *CONTENT)
    if isinstance(content, str) and isinstance(parts := message.get("parts"), list) and parts:
        content = parts  # the content repeats the text of the parts, or is empty
    if isinstance(content, str):
        return content, (), ()
    blocks = [content] if isinstance(content, dict) else content
    if not isinstance(blocks, list):
        return (None if content is None else text_of(content)), (), ()
    words: list[str] = []
    calls: list[LoggedCall] = []
    answers: list[CallResult] = []
    for block in blocks:
        _read_block(block, words, calls, answers)
    return ("\n".join(words) if words else None), tuple(calls), tuple(answers)


def _read_block(block: Any, words: list[str], calls: list[LoggedCall], answers: list[CallResult]) -> None:
    """Add a part of a message to the words, the calls or the answers."""
    if isinstance(block, str):
        words.append(block)
        return
    if not isinstance(block, dict):
        raise UnreadableTraceError(f"a message's content has a {type(block).__name__} among its parts")
    kind = block.get("type")
    kind = kind if isinstance(kind, str) else ""
    if kind in _SILENT or holds_thought(kind) or (block.get("thought") is True and "text" in block):
        return
    if kind in _WORDS or (not kind and isinstance(block.get("text"), str)):
        words.append(text_of(either(block, "text", "content", "refusal")))
        return
    held = _held(block, kind)
    if held is None:
        return
    what, inside = held
    if what == "answer":
        answers.append(_answer(inside))
        return
    calls.append(_call(inside))
    if kind == "tool_use" and inside.get("result") is not None:  # a tool of the model's own server
        answers.append(
            CallResult(calls[-1].identity, calls[-1].tool, inside["result"], bool(inside.get("error")))
        )


def _held(block: Mapping[str, Any], kind: str) -> tuple[Literal["call", "answer"], Mapping[str, Any]] | None:
    """(kind, mapping with its fields) of a part that is a call or an answer; None for any other part."""
    if kind in ("tool_call_response", "tool-result", "function_response") or kind.endswith("tool_result"):
        return "answer", block
    for key in ("functionResponse", "function_response", "toolResult"):
        if isinstance(block.get(key), dict):
            return "answer", block[key]
    for key in ("functionCall", "function_call", "toolUse", "tool_call", "function"):
        if isinstance(block.get(key), dict):
            return "call", {**{"id": block.get("id")}, **block[key]}
    if kind.endswith(("tool_use", "tool_call", "tool-call", "function_call")):
        return "call", block
    if kind == "text":
        return None
    if kind and kind.startswith("tool-") and "toolCallId" in block:  # AI SDK 5: tool-NAME with state
        return "call", {**block, "name": kind.removeprefix("tool-")}
    if either(block, *_NAMES) is not None and any(key in block for key in _ARGUMENTS):
        return "call", block
    return None


def _called(message: Mapping[str, Any]) -> Iterator[LoggedCall]:
    """The calls that a message holds outside its content."""
    if isinstance(calls := message.get("tool_calls"), list) and calls:
        yield from (_call(_loaded(call) if isinstance(call, str) else call) for call in calls)
        return
    beside = message.get("additional_kwargs")
    beside = beside if isinstance(beside, dict) else {}
    calls = _listed(either(message, "tool_calls", "toolCalls") or beside.get("tool_calls"))
    yield from map(_call, calls)
    if calls:  # some logs have one call in both forms
        return
    called = message.get("function_call") or beside.get("function_call")
    if isinstance(called, str):
        called = _loaded(called)
    if called:
        yield _call(called)


def _listed(calls: Any) -> list[Any]:
    """A list of calls; exports of tables store it as text."""
    if isinstance(calls, str):
        calls = _loaded(calls) if calls.strip() else []
    if calls is None:
        return []
    if isinstance(calls, dict):
        return [calls]
    if not isinstance(calls, list):
        raise UnreadableTraceError(f"tool_calls is a {type(calls).__name__}, not a list")
    return [_loaded(call) if isinstance(call, str) else call for call in calls]


def _loaded(text: str) -> Any:
    try:
        return json_value(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableTraceError(f"tool_calls is text but not JSON ({error})") from error


def _call(call: Any) -> LoggedCall:
    """One call of any dialect."""
    if not isinstance(call, dict):
        raise UnreadableTraceError(f"a tool call is a {type(call).__name__}, not an object")
    inner = call.get("function") or call.get("custom") or call
    if isinstance(inner, str):
        inner = {**call, "name": inner}
    if not isinstance(inner, dict) or not any(key in inner for key in _NAMES):
        raise UnreadableTraceError(f"a tool call has no name; its keys are {', '.join(map(str, call))[:120]}")
    return LoggedCall(_text(call, _IDENTITIES), _text(inner, _NAMES), either(inner, *_ARGUMENTS))


def _tool_answers(message: Mapping[str, Any]) -> Iterator[CallResult]:
    """The answers in a message of a tool."""
    several = message.get("tool_messages")
    if isinstance(several, list):
        for each in several:
            if isinstance(each, dict):
                yield from _tool_answers(each)
        return
    if message.get("requestor") == "user":  # tau2: the simulated user has tools of its own
        return
    content = either(message, "content", "parts")
    if isinstance(content, list) and content:
        words: list[str] = []
        answers: list[CallResult] = []
        for block in content:
            _read_block(block, words, [], answers)
        if answers:
            yield from answers
            return
    yield _answer(message)


def _answer(held: Mapping[str, Any]) -> CallResult:
    failed = (
        held.get("is_error") is True
        or held.get("isError") is True
        or held.get("status") in ("error", "failed")
        or held.get("error") not in (None, False)
    )
    return CallResult(
        _text(held, _ANSWERED), _text(held, _NAMES), either(held, *_ANSWERS, "text", "error"), failed
    )


def _text(held: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The first value that can be a name or an id, as text."""
    for key in keys:
        value = held.get(key)
        if isinstance(value, str | int):
            return str(value)
    return ""
