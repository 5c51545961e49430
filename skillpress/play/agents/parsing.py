"""A_k = Parser(th_k): from a response to a thought and an action.

Parsers are total: any text, however broken, yields an action or a typed reason why there is none,
because a policy in training writes everything. A lenient one may yield both: an action to carry out,
and what was wrong with its format. They take time linear in the text's length. Whether the action
makes sense is the environment's to say.
"""

from __future__ import annotations

import re

from skillpress.core.markup import behind_thought
from skillpress.core.parsed_action import ParsedAction

LONGEST_ACTION = 1000
"""Characters of an action at most; no environment has one a tenth as long."""
TAIL = 30
"""Characters at a text's end that the lenient parser takes for the action where tags are missing."""
CHINESE = re.compile("[\u4e00-\u9fff]")
"""A character of the block of common Chinese characters; a policy drifts into them."""


def plain(response: str) -> ParsedAction:
    """The whole response, stripped, is the action; behind its thought where it begins with ``<think>``.

    Invalid: ``unclosed`` (the thought has no end), ``empty``, ``too_long``, ``unprintable``.
    """
    thought, answer = behind_thought(response)
    return ParsedAction(thought, "", "unclosed") if answer is None else checked(thought, answer)


def tagged(response: str) -> ParsedAction:
    """``<think>thought</think><action>action</action>``, as verl-agent asks for.

    What stands between and around the tags is ignored. Tags inside the thought do not count, so a
    policy may think about actions. Invalid: ``missing_thought``, ``missing_action``,
    ``two_actions``, ``empty``, ``too_long``, ``unprintable``.
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
    """verl-agent's own reading for ALFWorld: there is nearly always something to carry out.

    The text is lower-cased. The action stands between the first ``<action>`` and the first
    ``</action>``, wherever they are, or is the text's last 30 characters where one of them is missing.
    Wrong, but carried out all the same: ``missing_action`` (the tail), ``missing_thought`` (``<think>`` or
    ``</think>`` is nowhere in the text) and ``chinese``. An empty element is well-formed: it is the
    environment that refuses it.

    Two things differ from verl-agent, where no game can tell: characters that cannot be printed, line
    breaks among them, become spaces and the action is stripped; and nothing is carried out that is
    ``too_long``.
    """
    thought = element("think", response)[0].strip()
    text = response.lower()
    before, opened, _ = text.partition("<action>")
    until, closed, _ = text.partition("</action>")
    if not (opened and closed):
        return ParsedAction(thought, _one_line(text[-TAIL:]), "missing_action")
    action = _one_line(text[len(before) + len(opened) : len(until)])
    if len(action) > LONGEST_ACTION:
        return ParsedAction(thought, "", "too_long")
    if "<think>" not in response or "</think>" not in response:
        return ParsedAction(thought, action, "missing_thought")
    if CHINESE.search(response):
        return ParsedAction(thought, action, "chinese")
    return ParsedAction(thought, action)


def _one_line(text: str) -> str:
    """The text with a space for every character that cannot be printed, stripped."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def element(tag: str, text: str) -> tuple[str, str | None]:
    """What the first element of this name holds, and the text after it; None where there is none."""
    content, closed, rest = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return content, rest if closed else None


def checked(thought: str, action: str) -> ParsedAction:
    """The stripped action, or why it cannot be sent: ``empty``, ``too_long``, ``unprintable``."""
    action = action.strip()
    if not action:
        return ParsedAction(thought, "", "empty")
    if len(action) > LONGEST_ACTION:
        return ParsedAction(thought, "", "too_long")
    if not action.isprintable():
        return ParsedAction(thought, "", "unprintable")
    return ParsedAction(thought, action)
