"""A_k = Parser(th_k): parse a response into a thought and an action.

Parsers are total: any text, however broken, yields an action or a typed reason why there is none, because a
policy in training writes all kinds of text. A lenient parser may yield both: an action to carry out, and what
was wrong with its format. Parsers take time linear in the text's length. Whether an action makes sense is for
the environment to decide.
"""

from __future__ import annotations

import re

from skillpress.core.markup import behind_thought
from skillpress.core.parsed_action import ParsedAction

LONGEST_ACTION = 1000
"""Maximum number of characters in an action. No environment has an action a tenth as long."""
TAIL = 30
"""The lenient parser takes this many characters at the end of the text as the action if tags are missing."""
CHINESE = re.compile("[\u4e00-\u9fff]")
"""Matches a character of the block of common Chinese characters. Policies may drift into Chinese."""


def plain(response: str) -> ParsedAction:
    """The whole response, stripped, is the action. If it begins with ``<think>``, the action follows the
    thought.

    Invalid: ``unclosed`` (the thought has no end), ``empty``, ``too_long``, ``unprintable``.
    """
    thought, answer = behind_thought(response)
    return ParsedAction(thought, "", "unclosed") if answer is None else checked(thought, answer)


def tagged(response: str) -> ParsedAction:
    """Parse ``<think>thought</think><action>action</action>``, the format that verl-agent asks for.

    Text between and around the tags is ignored. Tags inside the thought do not count, so a policy may think
    about actions. Invalid: ``missing_thought``, ``missing_action``, ``two_actions``, ``empty``, ``too_long``,
    ``unprintable``.
    """
    thought, answer = element("think", response)
    if answer is None:
        return ParsedAction("", "", "missing_thought")
    thought = thought.strip()
    action, rest = element("action", answer)
    if rest is None:
        return ParsedAction(thought, "", "missing_action")
    if element("action", rest)[1] is not None:
        return ParsedAction(thought, "", "two_actions")
    return checked(thought, action)


def lenient(response: str) -> ParsedAction:
    """verl-agent's own parser for ALFWorld, which nearly always finds an action to carry out.

    The text is lower-cased. The action is the text between the first ``<action>`` and the first
    ``</action>``, wherever they are. If one of them is missing, it is the last 30 characters of the text.
    These answers are invalid but carried out anyway: ``missing_action`` (the last 30 characters),
    ``missing_thought`` (the text contains no ``<think>`` or no ``</think>``) and ``chinese``. An empty
    element is well-formed; the environment refuses it.

    Two things differ from verl-agent, and no game can notice them: unprintable characters, including line
    breaks, become spaces and the action is stripped; and an action that is ``too_long`` is not carried out.
    """
    thought = element("think", response)[0].strip()
    text = response.lower()
    before, opened, _ = text.partition("<action>")
    until, closed, _ = text.partition("</action>")
    if not (opened and closed):
        return ParsedAction(thought, _one_line(text[-TAIL:]), "missing_action")
    # Empty if the first ``</action>`` comes before the first ``<action>``.
    action = _one_line(text[len(before) + len(opened) : len(until)])
    if len(action) > LONGEST_ACTION:
        return ParsedAction(thought, "", "too_long")
    if "<think>" not in response or "</think>" not in response:
        return ParsedAction(thought, action, "missing_thought")
    if CHINESE.search(response):
        return ParsedAction(thought, action, "chinese")
    return ParsedAction(thought, action)


def _one_line(text: str) -> str:
    """The text, stripped, with a space in place of every unprintable character."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def element(tag: str, text: str) -> tuple[str, str | None]:
    """(content, following text) of the first element of this name; the text is None if there is none."""
    content, closed, rest = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return content, rest if closed else None


def checked(thought: str, action: str) -> ParsedAction:
    """The stripped action, or the reason it cannot be sent: ``empty``, ``too_long``, ``unprintable``."""
    action = action.strip()
    if not action:
        return ParsedAction(thought, "", "empty")
    if len(action) > LONGEST_ACTION:
        return ParsedAction(thought, "", "too_long")
    if not action.isprintable():
        return ParsedAction(thought, "", "unprintable")
    return ParsedAction(thought, action)
