"""Calls between tags of an agent's own, such as ``<search>gcd</search>`` and ``<tool name="ls">/src</tool>``.

A tag's name is a tool. It must say that something is done (``search``, ``web_search``, ``read_file``), or the
prompt must explain it. ``<action>`` and its like hold the action itself, in words or as JSON, and so does
``<answer>`` if no other tag is a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from skillpress.environments.calls.steps import MOST_CHARACTERS, acted, json_or
from skillpress.logs.calls_in_json import Written, answered_in_json, in_json, is_name, shell_command
from skillpress.logs.thoughts import is_thought

HOLDERS, ANSWERS = (
    frozenset(["action", "act", "actions", "next_action"]),
    frozenset(["answer", "final_answer"]),
)
"""Tags around an action, and tags that may be one."""
_CONTAINERS = frozenset(
    ["tool", "call", "function", "invoke", "tool_call", "function_call", "tool_code", "use_tool", "tool_use"]
)
"""Tags around a call that has a name of its own."""
_SHELLS = frozenset(["bash", "shell", "sh", "cmd", "command", "terminal", "run", "execute"])
_ACTIONS = frozenset(
    """
    search answer tool call function invoke execute exec run command commands cmd bash shell terminal python
    code sql query browse browser click type visit open goto navigate fetch access read write edit insert
    replace list lookup retrieve retrieval submit finish solution guess move calculator calculate compute api
    request keystrokes ask attempt completion delete create scroll wiki google bing complete
    """.split()  # noqa: SIM905  a list of fifty words is longer, and no clearer
)
_RESULTS = frozenset(
    """
    result results response responses output outputs observation observations information info document
    documents context feedback error errors interpreter stdout stderr returncode content
    """.split()  # noqa: SIM905
)
_HTML = frozenset(
    """
    a b i p u br hr h1 h2 h3 li ol ul td th tr em div img pre html head body span table style script link
    strong form input button label title section nav main svg path meta
    """.split()  # noqa: SIM905
)
_NAMED = re.compile(r"<([A-Za-z][\w.:-]{0,60})(?:\s[^<>]*)?>")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CHILD = re.compile(r"<([A-Za-z][\w.:-]{0,60})>(.*?)</\1>", re.DOTALL)
_CALLED = re.compile(r"([A-Za-z_][\w.-]{0,80})\s*\((.*)\)\s*\Z", re.DOTALL)
_ANSWERED = re.compile(
    r"<((?:tool|function|search|execution|code)?_?(?:information|results?|responses?|documents?|observations?|outputs?"
    r"|interpreter|feedback|context))(?<!<response)>.*?</\1\s*>",
    re.DOTALL,
)
"""Answers to the agent in the middle of its own turn, as in transcripts that are a single text."""
_TOKENS = re.compile(r"<\|begin_(?:of_)?(\w{1,60})\|>(.*?)(?:<\|end_(?:of_)?\1\|>|\Z)", re.DOTALL)
_BEFORE = re.compile(r"(?:\A|[\n>.:!?)])[ \t]*\Z")


def names_of_tools(said: Sequence[str], prompts: Sequence[str]) -> frozenset[str]:
    """The names of the tags that an agent calls tools with.

    Args:
        said: what it said, without its thoughts.
        prompts: the texts that may explain its tags.
    """
    used = {name for words in said if "<" in words for name in _NAMED.findall(_spelt(words))}
    return frozenset(name for name in used if _is_tool(name) or _is_explained(name, prompts))


def reader_of(names: frozenset[str], prompts: Sequence[str]) -> Callable[[str], list[Written]]:
    """The reader of the calls in these tags. The tags of the prompts say whether ``<answer>`` is one of
    several tools."""
    others = names | {name for prompt in prompts for name in _NAMED.findall(prompt) if _is_tool(name)}
    alone = all(name.lower() in HOLDERS | ANSWERS for name in others)
    return lambda text: _read(text, names, HOLDERS | ANSWERS if alone else HOLDERS)


def _read(text: str, names: frozenset[str], holders: frozenset[str]) -> list[Written]:
    found: list[Written] = []
    held: list[Written] = []
    text = _ANSWERED.sub("", _spelt(text))
    for element in _elements(names).finditer(text):
        name, body = element["name"], element["body"].strip()[:MOST_CHARACTERS]
        if body.lower() == "false":  # whether it is done, and it is not
            continue
        certain = name.lower() in HOLDERS | ANSWERS | {"search"}
        if not certain and not _BEFORE.search(text[max(0, element.start() - 40) : element.start()]):
            continue  # a tag that is only spoken of
        if name.lower() in holders:
            held = _held(body)
        else:
            found += _called(name, element["attributes"], body)
    return found + held


def _spelt(text: str) -> str:
    """The text with tokens such as ``<|begin_search_query|>`` spelt as tags."""
    return _TOKENS.sub(r"<\1>\2</\1>", text) if "<|begin_" in text else text


def _held(body: str) -> list[Written]:
    """The action inside a tag that holds one: a call in JSON, or words."""
    steps = acted(body, "", False)
    return (in_json(body, strict=True) if steps[0].tool is None else []) or [
        (step.tool, step.content) for step in steps
    ]


def _called(name: str, attributes: str, body: str) -> list[Written]:
    beside = {key: one or other for key, one, other in _ATTRIBUTE.findall(attributes)}
    children = dict(_CHILD.findall(body)) if body[:1] == "<" else {}
    if name.lower() == "keystrokes":
        return shell_command(body)
    if "<keystrokes" in body:
        inside = re.findall(r"<keystrokes[^>]*>(.*?)(?:</keystrokes>|\Z)", body, re.DOTALL)
        return [call for each in inside for call in shell_command(each)]
    given = json_or(body) if body[:1] in ("{", "[") else None
    for key in ("name", "tool", "function"):
        if is_name(named := beside.pop(key, None)):
            return [
                (named, given if isinstance(given, dict) else {**beside, **(children or _input(name, body))})
            ]
    if name.lower() in _CONTAINERS:
        if calls := in_json(body) or answered_in_json(body):
            return calls
        if called := _CALLED.match(body):
            return [(called[1], {"input": called[2]})]
        for key in ("name", "tool_name", "tool"):
            if is_name(named := str(children.pop(key, "")).strip()):
                return [(named, children)]
    return [(name, given if isinstance(given, dict) else {**beside, **(children or _input(name, body))})]


def _input(name: str, body: str) -> dict[str, Any]:
    return {"command" if name.lower() in _SHELLS else "input": body}


@lru_cache(maxsize=64)
def _elements(names: frozenset[str]) -> re.Pattern[str]:
    """Elements with these names. One in which the agent was stopped has no end tag."""
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(
        rf"<(?P<name>{either})(?P<attributes>(?:\s[^<>]*)?)>(?P<body>.*?)(?:</(?P=name)\s*>|\Z)", re.DOTALL
    )


def _is_tool(name: str) -> bool:
    words = {word.lower() for word in _WORDS.findall(name)}
    if is_thought(name) or words & _RESULTS:
        return False
    return name.lower() in HOLDERS or bool(words & _ACTIONS)


def _is_explained(name: str, prompts: Sequence[str]) -> bool:
    """Whether a prompt explains a tag that is not a thought, a result or HTML."""
    words = {word.lower() for word in _WORDS.findall(name)}
    if is_thought(name) or words & _RESULTS or name.lower() in _HTML:
        return False
    return any(f"<{name}>" in prompt or f"<{name} " in prompt for prompt in prompts)
