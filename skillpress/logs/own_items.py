"""Items of a run, of whatever form, as messages of chat completions.

An item is a message of a known dialect, a choice of a completion with a message inside, or a call: an object
with a name and arguments, an object with the tool's name as its only key, or a text such as ``move(x=1)``.
Items of any other form need an ``Items`` that says where their parts are.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillpress.core.chat_messages import ROLES
from skillpress.environments.calls.steps import MOST_CHARACTERS, json_or, unfolded
from skillpress.logs.messages import is_message
from skillpress.logs.paths import value_at, values_at
from skillpress.logs.trace import UnreadableTraceError

SKIP = "skip"
"""The role of items outside the conversation."""
SPEAKERS = ("assistant", "tool", "user", "system", SKIP)
_TOOLS = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "kwargs", "tool_input")
_ANSWERS = ("result", "output", "observation", "response", "answer")
_IDENTITIES = ("call_id", "tool_call_id", "tool_use_id", "id")


@dataclass(frozen=True)
class Items:
    """Paths of the parts of an item. Each part may have several paths; the first with a value counts."""

    role: Sequence[str] = ()
    """The field that names the speaker. Without it, all items are the agent's."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Maps the values of ``role`` to assistant, tool, user, system or skip; ``*`` for any other value."""
    words: Sequence[str] = ("content", "text")
    """The agent's words."""
    calls: Sequence[str] = ()
    """The item's calls, a list or one call; without it, an item with a ``tool`` is one call itself."""
    id: Sequence[str] = _IDENTITIES
    """The call's id, in a call, and in an item or an entry of a tool."""
    tool: Sequence[str] = ("function.name", *_TOOLS)
    """The tool's name, in a call."""
    arguments: Sequence[str] = ("function.arguments", *_ARGUMENTS)
    """The tool's arguments, in a call."""
    answer: Sequence[str] = ()
    """The tool's answer: in a call, next to the call in its item, or in an item of a tool."""

    def messages(self, number: int, item: Any) -> Iterator[dict[str, Any]]:
        """The messages of an item.

        Args:
            number: the item's position, which names calls without an id.
        """
        item = unfolded(item)
        if not isinstance(item, dict):
            raise UnreadableTraceError(f"an item is a {type(item).__name__}, not an object")
        role = self._role(item)
        if role == "assistant":
            yield from self._said(number, item)
        elif role == "tool":
            yield from self._answers(item)
        elif role != SKIP:
            yield {"role": role, "content": value_at(item, self.words)}

    def _role(self, item: Any) -> str:
        if not self.role:
            return "assistant"
        values = [str(value) for path in self.role for value in values_at(item, path)]
        known = [self.roles.get(value) or ROLES.get(value.lower()) for value in values]
        found = next(filter(None, known), None) or self.roles.get("*")
        if found is None:
            raise UnreadableTraceError(
                f"an item's role is {' or '.join(values)[:60] or 'not said'}, but the roles of item say: "
                f"{', '.join(self.roles) or 'nothing'}"
            )
        return found

    def _said(self, number: int, item: Any) -> Iterator[dict[str, Any]]:
        held = [call for path in self.calls for value in values_at(item, path) for call in _listed(value)]
        if not self.calls and isinstance(value_at(item, self.tool), str):
            held = [item]
        held = [call for call in held if isinstance(call, dict)]
        called = [self._call(f"{number}.{place}", call) for place, call in enumerate(held)]
        words = None if held == [item] else value_at(item, self.words)
        if called or (words is not None and not any(words is call for call in held)):
            words = words if isinstance(words, str) else None if called else words
            yield {"role": "assistant", "content": words, "tool_calls": called}
        answers = [value_at(call, self.answer) for call in held]
        if called and answers[-1] is None:
            answers[-1] = value_at(item, self.answer)
        for call, answer in zip(called, answers, strict=True):
            if answer is not None:
                yield {"role": "tool", "tool_call_id": call["id"], "content": answer}

    def _call(self, number: str, call: Mapping[str, Any]) -> dict[str, Any]:
        tool, identity = value_at(call, self.tool), value_at(call, self.id)
        named = {"name": "" if tool is None else str(tool), "arguments": value_at(call, self.arguments)}
        return {"id": number if identity is None else str(identity), "function": named}

    def _answers(self, item: Any) -> Iterator[dict[str, Any]]:
        content = value_at(item, self.answer or self.words)
        several = isinstance(content, list) and all(
            isinstance(each, dict) and any(key in each for key in _IDENTITIES) for each in content
        )
        for each in content if several else [item]:
            answer = value_at(each, (*_ANSWERS, "content")) if several else content
            failed = isinstance(each, dict) and each.get("is_error") is True
            yield {
                "role": "tool",
                "tool_call_id": value_at(each, self.id),
                "content": "" if answer is None else answer,
                "is_error": failed,
            }


def plain_messages(item: Any) -> Iterator[Any]:
    """The messages of an item of a known form.

    Raises:
        UnreadableTraceError: it is neither a message nor a call.
    """
    item = unfolded(item)
    if isinstance(item, list):
        for each in item:
            yield from plain_messages(each)
    elif isinstance(item, str):
        calls = calls_in(item)
        yield {"role": "assistant", "content": None if calls else item, "tool_calls": calls}
    elif not isinstance(item, dict):
        raise UnreadableTraceError(f"an item is a {type(item).__name__}, neither a message nor a call")
    elif is_message(item):
        yield item
    elif isinstance(item.get("message"), dict) and is_message(item["message"]):
        yield item["message"]
    elif any(key in item for key in _TOOLS) and any(key in item for key in _ARGUMENTS):
        yield from Items(answer=_ANSWERS)._said(0, item)
    elif len(item) == 1 and isinstance(arguments := _arguments(*item.values()), dict):
        yield _calling([{"function": {"name": name, "arguments": arguments}} for name in item])
    else:
        raise UnreadableTraceError(
            f"an item is neither a message nor a call; its keys are {', '.join(map(str, item))[:120]}; "
            "item in a YAML of --paths says where its role, words and calls are"
        )


def calls_in(text: str) -> list[dict[str, Any]]:
    """The calls of a text that is only calls, ``move(x=1)`` or ``[move(x=1), stop()]``; else none."""
    if len(text) > MOST_CHARACTERS or not text.rstrip().endswith((")", "]")):
        return []
    try:
        with warnings.catch_warnings(action="ignore"):
            found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = found.elts if isinstance(found, ast.List | ast.Tuple) else [found]
    called = [node for node in nodes if isinstance(node, ast.Call)]
    return [_called(node) for node in called] if len(called) == len(nodes) else []


def _called(node: ast.Call) -> dict[str, Any]:
    arguments = {str(number): _literal(value) for number, value in enumerate(node.args)}
    arguments |= {each.arg or "**": _literal(each.value) for each in node.keywords}
    return {"function": {"name": ast.unparse(node.func), "arguments": arguments}}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.unparse(node)


def _calling(calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _arguments(value: Any) -> Any:
    return json_or(value) if isinstance(value, str) else value


def _listed(value: Any) -> list[Any]:
    value = unfolded(value)
    return value if isinstance(value, list) else [value]
