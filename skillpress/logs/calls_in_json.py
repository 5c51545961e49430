"""Calls that an agent writes as JSON: a call with its name and arguments, a list of shell commands or of
keystrokes, an action with fields of its own, or code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.environments.calls.steps import json_or
from skillpress.logs.thoughts import is_thought

Written = tuple[str | None, Any]
"""(tool, arguments) of a call in text; the tool is None for an action in words."""

NAMES, ARGUMENTS = (
    ("name", "tool", "tool_name", "function", "function_name", "action", "action_type", "action_name"),
    ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input", "kwargs"),
)
_COMMANDS, _KEYS = ("commands", "command", "cmd"), ("keystrokes", "command", "cmd")
_DONE = ("task_complete", "is_task_complete")
MARKS = tuple(f'"{key}"' for key in (*ARGUMENTS, *NAMES[1:], "actions", "code", *_COMMANDS, *_KEYS))
"""Keys of which one is in every JSON text with a call."""
_NAME_IN_JSON = re.compile(r'"name"\s*:\s*"([^"\n]{1,200})"')
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_OBJECT = re.compile(r"^[ \t]*[{\[].*[}\]]", re.DOTALL | re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:-]*")


def is_name(text: Any) -> bool:
    """Whether a text can be the name of a tool."""
    return isinstance(text, str) and len(text) <= 200 and _IDENTIFIER.fullmatch(text) is not None


def in_json(text: str, strict: bool = False) -> list[Written]:
    """The calls of a JSON text. Unless ``strict``, a call may have no arguments, and a text that is not JSON
    is a call of the tool whose name can be seen in it."""
    value = json_or(text)
    if value is None:
        found = None if strict else _NAME_IN_JSON.search(text)
        return [(found[1], text)] if found else []
    each = value if isinstance(value, list) else [value]
    calls = [call for one in each if (call := _call(one, strict)) is not None]
    return calls if len(calls) == len(each) else []


def answered_in_json(text: str) -> list[Written]:
    """The calls of a message that is JSON, perhaps inside a fence or with words around it."""
    value = _value_in(text)
    if isinstance(value, list):
        each = [list(_calls(one)) for one in value]
        return [call for calls in each for call in calls] if all(each) else []
    return list(_calls(value))


def called_in_json(text: str) -> list[Written]:
    """The calls of a message that is nothing but calls with a name and arguments, in JSON."""
    text = text.strip()
    if text.startswith("```json") and text.endswith("```"):
        text = text.removeprefix("```json").removesuffix("```").strip()
    return in_json(text, strict=True) if text[:1] in ("{", "[") and text[-1:] in ("}", "]") else []


def action_in_json(text: str) -> list[Written]:
    """The action in words of a message such as ``{"thought": ..., "action": "go to desk 1"}``."""
    value = _value_in(text)
    if not isinstance(value, dict) or any(key in value for key in ARGUMENTS):
        return []
    action = value.get("action")
    return [(None, action)] if isinstance(action, str) and action.strip() else []


def shell_command(text: str) -> list[Written]:
    """A command as a call of its program; nothing for an empty command, which only waits."""
    words = text.split(maxsplit=1)
    return [(words[0][:200], {"command": text})] if words else []


def _value_in(text: str) -> Any:
    text = text.strip()
    found: Any = None
    if text[:1] in ("{", "["):
        found = json_or(text)
    if found is None and (fenced := _FENCED.findall(text)):
        found = json_or(fenced[-1].strip())
    if found is None and (inside := _OBJECT.search(text)) is not None:
        found = json_or(inside[0])
    return found if isinstance(found, dict | list) else None


def _calls(value: Any) -> Iterator[Written]:
    if not isinstance(value, dict):
        return
    if (call := _call(value, strict=True)) is not None:
        yield call
        return
    listed = next((value[key] for key in _COMMANDS if isinstance(value.get(key), list)), None)
    if listed is not None:
        yield from _typed(value, listed)
    elif isinstance(several := value.get("actions", value.get("action")), list):
        for each in several:
            yield from _one_of(each)
    elif command := next((value[key] for key in _KEYS if isinstance(value.get(key), str)), ""):
        yield from shell_command(command)
    elif named := next((key for key in NAMES[1:] if is_name(value.get(key))), ""):
        given = {key: held for key, held in value.items() if key != named and not is_thought(key)}
        yield value[named], given
    elif isinstance(value.get("code"), str):
        yield "python", {"code": value["code"]}


def _typed(value: Mapping[str, Any], listed: list[Any]) -> Iterator[Written]:
    """The commands of a list, and whether the agent says that it is done."""
    texts = [each if isinstance(each, str) else _keys(each) for each in listed]
    calls = [call for text in texts for call in shell_command(text)]
    yield from calls
    done = next((key for key in _DONE if value.get(key) is True), None)
    if done is not None:
        yield done, {}
    elif not calls:  # it waits and says why
        yield None, next((held for key, held in value.items() if is_thought(key)), "")


def _keys(each: Any) -> str:
    held = each if isinstance(each, dict) else {}
    return next((held[key] for key in _KEYS if isinstance(held.get(key), str)), "")


def _one_of(each: Any) -> Iterator[Written]:
    """One entry of a list of actions: a call, or ``{tool: arguments}``."""
    if isinstance(each, str):
        yield None, each
        return
    found = list(_calls(each))
    if not found and isinstance(each, dict) and len(each) == 1:
        found = [(str(name), held) for name, held in each.items()]
    yield from found


def _call(value: Any, strict: bool) -> Written | None:
    if not isinstance(value, dict):
        return None
    for key in ("function", "action", "command", "tool_call"):
        if isinstance(value.get(key), dict):
            value = value[key]
            break
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), None)
    given = next((key for key in ARGUMENTS if key in value), None)
    if name is None or (given is None and strict):
        return None
    return name, value[given] if given is not None else {}
