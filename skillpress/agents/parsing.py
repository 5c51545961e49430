"""A_k = Parser(th_k): from a response to a thought and an action.

Parsers are total: any text, however broken, yields an action or a typed reason why there is none,
because a policy in training writes everything. Whether the action makes sense is the world's to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from skillpress.interface import ParsedAction, Parser

_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


def plain(response: str) -> ParsedAction:
    """The whole response, stripped, is the action.

    Invalid: ``empty``, ``unprintable``.
    """
    return _checked("", response)


def tagged(response: str) -> ParsedAction:
    """``<think>thought</think><action>action</action>``, as verl-agent asks for.

    What stands between and around the tags is ignored. Tags inside the thought do not count, so a
    policy may think about actions. Invalid: ``missing_thought``, ``missing_action``,
    ``two_actions``, ``empty``, ``unprintable``.
    """
    think = _THINK.search(response)
    if think is None:
        return ParsedAction("", "", "missing_thought")
    thought = think[1].strip()
    actions = _ACTION.findall(response, think.end())
    if not actions:
        return ParsedAction(thought, "", "missing_action")
    if len(actions) > 1:
        return ParsedAction(thought, "", "two_actions")
    return _checked(thought, actions[0])


def _checked(thought: str, action: str) -> ParsedAction:
    action = action.strip()
    if not action:
        return ParsedAction(thought, "", "empty")
    if not action.isprintable():
        return ParsedAction(thought, "", "unprintable")
    return ParsedAction(thought, action)


PARSERS: Mapping[str, Parser] = {"plain": plain, "tagged": tagged}
"""Name, as a rendering states it, to the parser."""
