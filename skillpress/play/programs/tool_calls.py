"""Reading the tool calls in a sampled text. Each function is a ``Reader`` and has a name in
``registry.CALL_READERS``.

What a policy writes depends on its chat template, so the reader goes with the model: Hermes' form is
Qwen2.5's and Qwen3's, the XML form that of Qwen3-Coder, Llama 3 writes one JSON object. A text that begins a
call and breaks its form is *invalid*: it stays text, so the program sees what the model wrote, and the step
says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from skillpress.core.markup import THOUGHT, THOUGHT_END
from skillpress.play.programs.requests import ToolCall


@dataclass(frozen=True)
class Read:
    """What a response's text says."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    invalid: str | None = None
    """Why a call could not be read; None if nothing was wrong."""


Reader = Callable[[str], Read]

BROKEN = "broken_call"
"""The reason of a step whose call could not be read."""
_HERMES = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_XML_CALL = re.compile(
    r"(?:<tool_call>\s*)?<function=([^>\s]+)>(.*?)(?:</function>|\Z)(?:\s*</tool_call>)?", re.DOTALL
)
_XML_ARGUMENT = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```([\w+-]*)[^\n]*\n(.*?)```", re.DOTALL)
_PYTHON_TAG = "<|python_tag|>"


def hermes(text: str) -> Read:
    """``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, any number of them."""
    thought, rest = _thought(text)
    calls = [_call(found) for found in _HERMES.findall(rest)]
    return _read(text, thought, _HERMES.sub("", rest), calls)


def qwen_xml(text: str) -> Read:
    """``<function=name><parameter=key>value</parameter></function>``; a value that is JSON is read as
    such."""
    thought, rest = _thought(text)
    calls = [
        ToolCall(name, {key: _value(value) for key, value in _XML_ARGUMENT.findall(inside)})
        for name, inside in _XML_CALL.findall(rest)
    ]
    return _read(text, thought, _XML_CALL.sub("", rest), calls)


def llama_json(text: str) -> Read:
    """One object ``{"name": ..., "parameters": {...}}`` as the whole response, or several joined by ``;``."""
    thought, rest = _thought(text)
    said = rest.strip().removeprefix(_PYTHON_TAG).strip()
    if not said.startswith("{"):
        return Read(rest.strip(), (), thought)
    return _read(text, thought, "", [_call(part) for part in _objects(said)])


def fenced(text: str) -> Read:
    """The first fenced block is the call of a tool named by its language, ``bash`` if it names none; the
    argument is ``command``."""
    thought, rest = _thought(text)
    found = _FENCE.search(rest)
    if found is None:
        return Read(rest.strip(), (), thought)
    call = ToolCall(found[1] or "bash", {"command": found[2].rstrip("\n")})
    return Read(rest.strip(), (call,), thought)


def words(text: str) -> Read:
    """The text alone: the compact words of a small policy, and every agent that reads calls itself."""
    return Read(text.strip())


def plain(text: str) -> Read:
    """The text, without a thought in ``<think>``."""
    thought, rest = _thought(text)
    return Read(rest.strip(), (), thought)


def _read(text: str, thought: str, content: str, calls: Sequence[ToolCall | None]) -> Read:
    if any(call is None for call in calls):
        return Read(_thought(text)[1].strip(), (), thought, BROKEN)
    return Read(content.strip(), tuple(call for call in calls if call is not None), thought)


def _thought(text: str) -> tuple[str, str]:
    """(thought, rest). A call inside a thought does not count."""
    if THOUGHT not in text and THOUGHT_END not in text:
        return "", text
    before, _, rest = text.partition(THOUGHT_END)
    head, _, thought = before.rpartition(THOUGHT)
    return thought.strip(), head + rest


def _call(text: str) -> ToolCall | None:
    try:
        found = json.loads(text.strip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    arguments = found.get("arguments", found.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = _value(arguments)
    return ToolCall(found["name"], arguments) if isinstance(arguments, dict) else None


def _objects(text: str) -> list[str]:
    """The JSON objects that a text consists of; a rest that is not an object is the last item."""
    decoder, found, place = json.JSONDecoder(), list[str](), 0
    while place < len(text):
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return [*found, text[place:]]
        found.append(text[place:end])
        place = end + len(text[end:]) - len(text[end:].lstrip("; \n\t"))
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
