"""Reading the tool calls in a sampled text. Each function is a ``Reader`` and has a name in
``registry.CALL_READERS``.

The form depends on the policy's chat template, so the reader belongs to the model: Qwen2.5 and Qwen3 write
Hermes' form, Qwen3-Coder writes the XML form, and Llama 3 writes one JSON object. A text that begins a call
and breaks its form is *invalid*: it stays text, so the program sees what the model wrote, and the step says
why. The same holds for a call whose arguments no answer could contain (``requests.can_be_sent``).

In the two forms of JSON a call's own strings may hold ``<think>`` or ``</think>``, for example when a
prompt's file is edited; these begin and end no thought. The other two forms have no quotes, so there they do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from skillpress.core.chat_messages import ToolCall, can_be_sent
from skillpress.core.markup import THOUGHT, THOUGHT_END


@dataclass(frozen=True)
class Read:
    """The content of a response's text."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    invalid: str | None = None
    """Why a call could not be read; None if nothing was wrong."""


Reader = Callable[[str], Read]

BROKEN = "broken_call"
"""The reason of a step whose call could not be read."""
_THOUGHT_TAG = re.compile(f"{THOUGHT}|{THOUGHT_END}")
_HERMES_JSON = re.compile(r"<tool_call>\s*(?=\{)")
_LLAMA_JSON = re.compile(rf"(?:\A|;|{THOUGHT_END}|<\|python_tag\|>)\s*(?=\{{)")
_HERMES = "<tool_call>"
_HERMES_END = re.compile(r"\s*(?:</tool_call>|\Z)")
_XML_CALL = re.compile(r"(?:<tool_call>\s*)?<function=([^>\s]+)>")
_XML_ARGUMENT = re.compile(
    r"\s*<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>(?=\s*<(?:parameter=|/function>))", re.DOTALL
)
_XML_END = re.compile(r"\s*</function>(?:\s*</tool_call>)?")
_FENCE = re.compile(r"(?<![\w`])```([\w+-]*)[^\n`]*(?:\n|\Z)")
_PYTHON_TAG = "<|python_tag|>"
_JSON = json.JSONDecoder()


def hermes(text: str) -> Read:
    """``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, any number of them. The last closing tag
    may be missing at the text's end.
    """
    return _read(text, _hermes, _HERMES_JSON)


def qwen_xml(text: str) -> Read:
    """``<function=name><parameter=key>value</parameter></function>``, any number of them. A value that is
    JSON is read as such; a JSON string is not, since this form writes texts without quotes."""
    return _read(text, _qwen_xml)


def llama_json(text: str) -> Read:
    """One object ``{"name": ..., "parameters": {...}}`` as the whole response, or several joined by ``;``."""
    return _read(text, _llama_json, _LLAMA_JSON)


def fenced(text: str) -> Read:
    """The first fenced block is the call of a tool named by its language, or ``bash`` if it names none; the
    argument is ``command``. The block stays in the text.
    """
    return _read(text, _fenced)


def words(text: str) -> Read:
    """The text alone: the compact words of a small policy, and every agent that reads calls itself."""
    return Read(text.strip())


def plain(text: str) -> Read:
    """The text, without a thought in ``<think>``."""
    return _read(text, lambda rest: (rest, ()))


def _read(
    text: str,
    find: Callable[[str], tuple[str, Sequence[ToolCall]]],
    json_begins: re.Pattern[str] | None = None,
) -> Read:
    """Args:
    find: returns (content, calls) of a text without thoughts; raises ``ValueError`` if a call is broken.
    json_begins: ends where a call's JSON begins.
    """
    thought, rest = _thought(text, json_begins)
    try:
        content, calls = find(rest)
    except (ValueError, RecursionError):
        return Read(rest.strip(), (), thought, BROKEN)
    return Read(content.strip(), tuple(calls), thought)


def _thought(text: str, json_begins: re.Pattern[str] | None) -> tuple[str, str]:
    """(thoughts, rest). A call inside a thought does not count. The prompt may have opened the first one."""
    tags = list(_THOUGHT_TAG.finditer(text))
    if tags and json_begins is not None:
        quoted = list(_json_spans(text, json_begins))
        tags = [tag for tag in tags if not any(begin < tag.start() < end for begin, end in quoted)]
    thoughts, rest, place = [], "", 0
    # Where the thought begins that is open at ``place``; a text whose first tag ends one began inside it.
    opened = 0 if tags and tags[0][0] == THOUGHT_END else None
    for tag in tags:
        if opened is None and tag[0] == THOUGHT:
            rest += text[place : tag.start()]
            opened = tag.end()
        elif opened is not None and tag[0] == THOUGHT_END:
            thoughts.append(text[opened : tag.start()])
            opened, place = None, tag.end()
    if opened is None:
        rest += text[place:]
    else:
        thoughts.append(text[opened:])
    return "\n".join(filter(None, (thought.strip() for thought in thoughts))), rest


def _json_spans(text: str, begins: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """(begin, end) of every call's JSON that can be read, from left to right, none inside another."""
    place = 0
    while begun := begins.search(text, place):
        begin, place = begun.end(), begun.end() + 1
        with suppress(ValueError, RecursionError):
            _, rest = _first_call(text[begin:])
            place = len(text) - len(rest)
            yield begin, place


def _hermes(text: str) -> tuple[str, list[ToolCall]]:
    calls = []
    content, opened, behind = text.partition(_HERMES)
    while opened:
        call, behind = _first_call(behind.lstrip())
        closed = _HERMES_END.match(behind)
        if closed is None:
            raise ValueError("a call's tags enclose more than the call")
        calls.append(call)
        said, opened, behind = behind[closed.end() :].partition(_HERMES)
        content += said
    return content, calls


def _qwen_xml(text: str) -> tuple[str, list[ToolCall]]:
    calls, content, place = [], "", 0
    while opened := _XML_CALL.search(text, place):
        content += text[place : opened.start()]
        place, arguments = opened.end(), dict[str, Any]()
        while argument := _XML_ARGUMENT.match(text, place):
            name, place = argument[1], argument.end()
            if name in arguments:
                raise ValueError(f"two parameters have the name {name}")
            arguments[name] = _xml_value(argument[2])
        closed = _XML_END.match(text, place)
        if closed is None:
            raise ValueError("a function is not closed after its parameters")
        place = closed.end()
        calls.append(ToolCall(opened[1], arguments))
    content += text[place:]
    if _HERMES in content or "<function=" in content:
        raise ValueError("a call names no function")
    return content, calls


def _xml_value(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(found, str) or not can_be_sent(found) else found


def _llama_json(text: str) -> tuple[str, list[ToolCall]]:
    rest = text.strip().removeprefix(_PYTHON_TAG).strip()
    if not rest.startswith("{"):
        return text, []
    calls = []
    while rest:
        call, rest = _first_call(rest)
        calls.append(call)
        rest = rest.lstrip("; \n\t")
    return "", calls


def _fenced(text: str) -> tuple[str, list[ToolCall]]:
    opened = _FENCE.search(text)
    if opened is None:
        return text, []
    command, closed, _ = text[opened.end() :].partition("```")
    if not closed:
        raise ValueError("a fenced block is not closed")
    return text, [ToolCall(opened[1] or "bash", {"command": command.rstrip("\n")})]


def _first_call(text: str) -> tuple[ToolCall, str]:
    """(the call that a text begins with as JSON, the rest)."""
    found, end = _JSON.raw_decode(text)
    if not isinstance(found, dict) or not isinstance(found.get("name"), str) or not can_be_sent(found):
        raise ValueError("the call is not an object that names a tool")
    arguments = found.get("arguments", found.get("parameters", {}))
    if isinstance(arguments, str):  # JSON within JSON
        arguments = json.loads(arguments)
    if not isinstance(arguments, dict) or not can_be_sent(arguments):
        raise ValueError("the call's arguments are not an object")
    return ToolCall(found["name"], arguments), text[end:]
