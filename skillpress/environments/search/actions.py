"""An action is a query in <search> or an answer in <answer>; the compact rendering has short actions.

    search question        <search>the question</search>
    search entity 2        <search>the second name or quotation of the question</search>
    search candidate 3     <search>the third possible answer</search>
    answer candidate 3     <answer>the third possible answer</answer>
    answer yes             <answer>yes</answer> (or ``no``)

Short actions name things on the desk (``notebook_qa/desk.py``).
"""

from __future__ import annotations

import re
from typing import Literal

from skillpress.core.parsed_action import ParsedAction
from skillpress.environments.notebook_qa.desk import Desk
from skillpress.rollouts.agents.parsing import checked

Kind = Literal["search", "answer"]
KINDS: tuple[Kind, ...] = ("search", "answer")
_SHORT = re.compile(r"(search|answer) (?:(question|yes|no)|(entity|candidate) (\d{1,3}))")
_THOUGHT_TAGS = re.compile("</?think>")


def search(response: str) -> ParsedAction:
    """Parse Search-R1's format: the first <search> or <answer> that is closed is the action.

    The text before it is the thought. What follows its closing tag does not count, and the agent drops its
    tokens. Invalid: ``missing_action``, ``empty``, ``too_long``, ``unprintable``.
    """
    found = first_tag(response)
    if found is None:
        return ParsedAction(_thought(response), "", "missing_action")
    kind, start, end = found
    said = checked("", " ".join(response[start + len(f"<{kind}>") : end].split()))
    return ParsedAction(
        _thought(response[:start]),
        tagged_text(kind, said.action) if said.action else "",
        said.invalid,
        end + len(f"</{kind}>"),
    )


def first_tag(text: str) -> tuple[Kind, int, int] | None:
    """(kind, place of its opening tag, place of its closing tag) of the first closed tag."""
    closed: list[tuple[int, int, Kind]] = []
    for kind in KINDS:
        start = text.find(f"<{kind}>")
        end = text.find(f"</{kind}>", start)
        if start >= 0 and end >= 0:
            closed.append((start, end, kind))
    if not closed:
        return None
    start, end, kind = min(closed)
    return kind, start, end


def tagged_text(kind: str, text: str) -> str:
    """An action in the environment's wording."""
    return f"<{kind}>{text}</{kind}>"


def read_action(action: str, desk: Desk) -> tuple[Kind, str] | None:
    """What an action in either wording searches for or answers; None if it does neither."""
    found = first_tag(action)
    if found is not None:
        kind, start, end = found
        text = action[start + len(f"<{kind}>") : end].strip()
        return (kind, text) if text else None
    match = _SHORT.fullmatch(" ".join(action.split()))
    named = _named(match, desk) if match else None
    return (KINDS[match[1] == "answer"], named) if match and named else None


def short_words(desk: Desk, may_search: bool) -> tuple[str, ...]:
    """The short actions that are possible now, in a fixed order."""
    answers = range(1, len(desk.answers) + 1)
    searches = [
        "search question",
        *(f"search entity {number}" for number in range(1, len(desk.entities) + 1)),
        *(f"search candidate {number}" for number in answers),
    ]
    said = (f"answer candidate {number}" for number in answers)
    return (*(searches if may_search else ()), *said, "answer yes", "answer no")


def _named(match: re.Match[str], desk: Desk) -> str | None:
    """The text that a short action names; None if it is not on the desk or does not suit the verb."""
    verb, fixed, what = match[1], match[2], match[3]
    if fixed:
        suits = (fixed == "question") == (verb == "search")
        return (desk.question if fixed == "question" else fixed) if suits else None
    if what == "entity" and verb == "answer":
        return None
    things = desk.entities if what == "entity" else [candidate.text for candidate in desk.answers]
    number = int(match[4])
    return things[number - 1] if 1 <= number <= len(things) else None


def _thought(text: str) -> str:
    return _THOUGHT_TAGS.sub("", text).strip()
