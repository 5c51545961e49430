"""A_k = Parser(th_k): from a response to a thought and an action.

Parsers are total: any text, however broken, yields an action or a typed reason why there is none,
because a policy in training writes everything. They take time linear in the text's length. Whether
the action makes sense is the world's to say.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillpress.interface import ParsedAction, Parser

LONGEST_ACTION = 1000
"""Characters of an action at most; no world has one a tenth as long."""


def plain(response: str) -> ParsedAction:
    """The whole response, stripped, is the action.

    Invalid: ``empty``, ``too_long``, ``unprintable``.
    """
    return _checked("", response)


def tagged(response: str) -> ParsedAction:
    """``<think>thought</think><action>action</action>``, as verl-agent asks for.

    What stands between and around the tags is ignored. Tags inside the thought do not count, so a
    policy may think about actions. Invalid: ``missing_thought``, ``missing_action``,
    ``two_actions``, ``empty``, ``too_long``, ``unprintable``.
    """
    thought, answer = _element("think", response)
    if answer is None:
        return ParsedAction("", "", "missing_thought")
    thought = thought.strip()
    action, rest = _element("action", answer)
    if rest is None:
        return ParsedAction(thought, "", "missing_action")
    if _element("action", rest)[1] is not None:
        return ParsedAction(thought, "", "two_actions")
    return _checked(thought, action)


def _element(tag: str, text: str) -> tuple[str, str | None]:
    """What the first element of this name holds, and the text after it; None where there is none."""
    content, closed, rest = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return content, rest if closed else None


def _checked(thought: str, action: str) -> ParsedAction:
    action = action.strip()
    if not action:
        return ParsedAction(thought, "", "empty")
    if len(action) > LONGEST_ACTION:
        return ParsedAction(thought, "", "too_long")
    if not action.isprintable():
        return ParsedAction(thought, "", "unprintable")
    return ParsedAction(thought, action)


PARSERS: Mapping[str, Parser] = {"plain": plain, "tagged": tagged}
"""Name, as a rendering states it, to the parser."""
