"""A_k = Parser(th_k) for structured answers: JSON, XML, and a plan above the action.

The vocabulary is the agent's choice (*Language as a Universal Interface for Reinforcement Learning Agents*,
section 1.1). A structured one marks its parts unambiguously, whatever characters they contain. A hierarchical
one chooses a word of a higher level, the plan, before the action that carries it out.

    json      {"thought": "...", "action": "open fridge 1"}
    xml       <step><thought>...</thought><action>open fridge 1</action></step>
    planned   <think>...</think><plan>open</plan><action>open fridge 1</action>

Like all parsers, these are total, take linear time, and ignore text around an answer. They skip a thought in
``<think>`` at the start of a response, because reasoning models begin with one. Left out: plans that the
environment carries out in several steps. Each step is still one action of the environment, and the plan is
only part of the policy's thought.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from xml.sax.saxutils import unescape

from skillpress.core.markup import behind_thought
from skillpress.core.parsed_action import ParsedAction
from skillpress.rollouts.agents.parsing import checked, element, tagged

LONGEST_ANSWER = 20_000
"""The parser looks at no more than this many characters of an answer."""
PLAN = "Plan: "
"""Precedes the plan in the last line of the thought."""

MARKERS: Mapping[str, tuple[str, ...]] = {
    "tagged": ("<think>", "</think>", "<action>", "</action>"),
    "lenient": ("<think>", "</think>", "<action>", "</action>"),
    "notebook": ("<think>", "</think>", "<code>", "</code>", "<output>", "</output>"),
    "json": ('{"thought": "', '", "action": "', '"}'),
    "xml": ("<step><thought>", "</thought><action>", "</action></step>"),
    "planned": ("<think>", "</think>", "<plan>", "</plan>", "<action>", "</action>"),
}
"""Maps each parser to the fixed texts of its answers."""


def json_object(response: str) -> ParsedAction:
    """Parse the first JSON object, with the texts ``thought`` and ``action``; other keys are ignored.

    Invalid: ``unclosed`` (the object or the thought before it begins and has no end), ``missing_thought``,
    ``missing_action`` (the key is missing or its value is not a text), ``two_actions`` (the key occurs
    twice), ``empty``, ``too_long``, ``unprintable``.
    """
    _, answer = behind_thought(response)
    if answer is None:
        return ParsedAction("", "", "unclosed")
    if len(answer) > LONGEST_ANSWER:
        return ParsedAction("", "", "too_long")
    if "{" not in answer:
        return ParsedAction("", "", "missing_action")
    try:
        pairs, _ = _DECODER.raw_decode(answer, answer.index("{"))
    except (ValueError, RecursionError):
        return ParsedAction("", "", "unclosed")
    found = dict(pairs)
    thought, action = found.get("thought"), found.get("action")
    if not isinstance(thought, str):
        return ParsedAction("", "", "missing_thought")
    thought = thought.encode(errors="replace").decode()  # JSON can encode a lone surrogate; no file takes it
    if not isinstance(action, str):
        return ParsedAction(thought.strip(), "", "missing_action")
    if [key for key, _ in pairs].count("action") > 1:
        return ParsedAction(thought.strip(), "", "two_actions")
    return checked(thought.strip(), action)


_DECODER = json.JSONDecoder(object_pairs_hook=list)
"""Keeps an object's pairs in order, including repeated keys."""


def xml(response: str) -> ParsedAction:
    """Parse ``<step>`` with ``<thought>`` and ``<action>`` in this order; ``&lt;``, ``&gt;`` and ``&amp;``
    are decoded.

    It does not use an XML parser, so an answer cannot refer to files. Invalid: ``missing_thought``,
    ``missing_action``, ``two_actions``, ``unclosed``, ``empty``, ``too_long``, ``unprintable``.
    """
    _, answer = behind_thought(response)
    if answer is None:
        return ParsedAction("", "", "unclosed")
    inside, closed = element("step", answer)
    thought, rest = element("thought", inside if closed is not None else answer)
    if rest is None:
        return ParsedAction("", "", "missing_thought")
    thought = unescape(thought.strip())
    action, behind = element("action", rest)
    if behind is None:
        return ParsedAction(thought, "", "missing_action")
    if closed is None:
        return ParsedAction(thought, "", "unclosed")
    if element("action", behind)[1] is not None:
        return ParsedAction(thought, "", "two_actions")
    return checked(thought, unescape(action))


def planned(response: str) -> ParsedAction:
    """Parse as ``tagged``, with ``<plan>`` between the thought and the action; the plan becomes part of the
    thought.

    Invalid: the same as ``tagged``, and ``missing_plan``. The action is not carried out in either case.
    """
    parsed = tagged(response)
    if parsed.invalid:
        return parsed
    behind = response.partition("</think>")[2]
    plan, rest = element("plan", behind.partition("<action>")[0])
    if rest is None or not plan.strip():
        return ParsedAction(parsed.thought, "", "missing_plan")
    return ParsedAction(f"{parsed.thought}\n{PLAN}{' '.join(plan.split())}".strip(), parsed.action)
