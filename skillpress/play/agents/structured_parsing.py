"""A_k = Parser(th_k) for structured answers: JSON, XML, and a plan above the action.

A vocabulary is a choice of the agent's (*Language as a Universal Interface for Reinforcement Learning
Agents*, section 1.1): structured, where the form says which part is which whatever characters are in it;
hierarchical, where a word of a higher level, the plan, is chosen before the action that carries it out.

    json      {"thought": "...", "action": "open fridge 1"}
    xml       <step><thought>...</thought><action>open fridge 1</action></step>
    planned   <think>...</think><plan>open</plan><action>open fridge 1</action>

As all parsers they are total, take linear time, and ignore what stands around an answer. A thought in
``<think>`` that the response begins with is passed over: reasoning models begin so. Left out: plans that
the environment carries out in several steps. A step stays one action of the environment's; the plan stays the
policy's own, a part of its thought.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from xml.sax.saxutils import unescape

from skillpress.core.markup import behind_thought
from skillpress.core.parsed_action import ParsedAction
from skillpress.play.agents.parsing import checked, element, tagged

LONGEST_ANSWER = 20_000
"""Characters of an answer that is looked into."""
PLAN = "Plan: "
"""Stands before the plan, in the thought's last line."""

MARKERS: Mapping[str, tuple[str, ...]] = {
    "tagged": ("<think>", "</think>", "<action>", "</action>"),
    "lenient": ("<think>", "</think>", "<action>", "</action>"),
    "notebook": ("<think>", "</think>", "<code>", "</code>", "<output>", "</output>"),
    "json": ('{"thought": "', '", "action": "', '"}'),
    "xml": ("<step><thought>", "</thought><action>", "</action></step>"),
    "planned": ("<think>", "</think>", "<plan>", "</plan>", "<action>", "</action>"),
}
"""Parser to what its answers are put together with."""


def json_object(response: str) -> ParsedAction:
    """The first JSON object, with the texts ``thought`` and ``action``; other keys are ignored.

    Invalid: ``unclosed`` (it or the thought before it begins and has no end), ``missing_thought``,
    ``missing_action`` (or either is no text), ``two_actions`` (the key is there twice), ``empty``,
    ``too_long``, ``unprintable``.
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
    thought = thought.encode(errors="replace").decode()  # JSON can write half a character; no file takes it
    if not isinstance(action, str):
        return ParsedAction(thought.strip(), "", "missing_action")
    if [key for key, _ in pairs].count("action") > 1:
        return ParsedAction(thought.strip(), "", "two_actions")
    return checked(thought.strip(), action)


_DECODER = json.JSONDecoder(object_pairs_hook=list)
"""Keeps the pairs of an object, equal keys included."""


def xml(response: str) -> ParsedAction:
    """``<step>`` with ``<thought>`` and ``<action>`` in this order; ``&lt;``, ``&gt;`` and ``&amp;`` are
    read.

    No XML parser: there is nothing in it that could name a file. Invalid: ``missing_thought``,
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
    """As ``tagged``, with ``<plan>`` between the thought and the action, which is read as part of the
    thought.

    Invalid: as ``tagged``, and ``missing_plan``, where the action is not carried out.
    """
    parsed = tagged(response)
    if parsed.invalid:
        return parsed
    behind = response.partition("</think>")[2]
    plan, rest = element("plan", behind.partition("<action>")[0])
    if rest is None or not plan.strip():
        return ParsedAction(parsed.thought, "", "missing_plan")
    return ParsedAction(f"{parsed.thought}\n{PLAN}{' '.join(plan.split())}".strip(), parsed.action)
