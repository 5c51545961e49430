"""An action is Python code; in the compact rendering, short actions represent code.

    search question        search(the question)
    search entity 2        search(the second name or quotation of the question)
    search candidate 3     search(the third possible answer)
    read title 1           read(the first title that was found)
    compute earliest       which of the pages that were read names the earliest year (or ``latest``)
    note candidate 3       the notepad's facts get the third possible answer
    answer candidate 3     submit_final_answer(the third possible answer)
    answer yes             submit_final_answer("yes") (or ``no``)

They refer to things on the desk and are executed as the code that they represent. A text that has the form of
a short action but names something that is not on the desk is refused; any other text is code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.environments.notebook_qa.desk import Desk

COMPUTED = "compared:"
"""Printed by a comparison before its result."""
_NUMBERED = re.compile(r"(search|read|note|answer) (entity|candidate|title) (\d{1,3})")
_FIXED = ("search question", "compute earliest", "compute latest", "answer yes", "answer no")
_COMPARE = """\
import re
first = {{}}
for title in {titles!r}:
    years = re.findall(r"\\b(?:1\\d{{3}}|20\\d\\d)\\b", read(title))
    if years:
        first[title] = int(years[0])
print("{computed}", {choose}(first, key=first.get))"""


@dataclass(frozen=True)
class ReadAction:
    """The meaning of an action's text."""

    code: str
    """Empty if the action is refused."""
    invalid: str | None = None
    """``nothing_to_run`` or ``not_on_the_desk``; None if the code is to be run."""


def read_action(action: str, desk: Desk) -> ReadAction:
    """Return the code of an action in either wording."""
    if not action.strip():
        return ReadAction("", "nothing_to_run")
    words = " ".join(action.split())
    if words not in _FIXED and not _NUMBERED.fullmatch(words):
        return ReadAction(action)
    code = _code_of(words, desk)
    return ReadAction("", "not_on_the_desk") if code is None else ReadAction(code)


def short_words(desk: Desk) -> tuple[str, ...]:
    """The short actions that are possible now, in a fixed order."""
    titles, answers = range(1, len(desk.titles) + 1), range(1, len(desk.answers) + 1)
    found = ["search question", *(f"search entity {number}" for number in range(1, len(desk.entities) + 1))]
    found += [f"read title {number}" for number in titles]
    found += [f"{verb} candidate {number}" for verb in ("search", "note", "answer") for number in answers]
    if len(desk.pages) > 1:
        found += ["compute earliest", "compute latest"]
    return (*found, "answer yes", "answer no")


def _code_of(words: str, desk: Desk) -> str | None:
    """The code of a short action; None if it names something that is not on the desk."""
    match = _NUMBERED.fullmatch(words)
    if match is None:
        return _fixed(words, desk)
    verb, what, number = match[1], match[2], int(match[3])
    named: dict[str, Sequence[str]] = {
        "entity": desk.entities,
        "title": [found.title for found in desk.titles],
        "candidate": [candidate.text for candidate in desk.answers],
    }
    if not 1 <= number <= len(named[what]):
        return None
    return _carried_out(verb, what, named[what][number - 1])


def _carried_out(verb: str, what: str, name: str) -> str | None:
    match verb, what:
        case "search", "entity" | "candidate":
            return f"search({name!r})"
        case "read", "title":
            return f"print(read({name!r}))"
        case "note", "candidate":
            return f"notepad.facts.append({name!r})"
        case "answer", "candidate":
            return f"submit_final_answer({name!r})"
    return None


def _fixed(words: str, desk: Desk) -> str | None:
    verb, what = words.split()
    if verb == "search":
        return f"search({desk.question!r})"
    if verb == "answer":
        return f"submit_final_answer({what!r})"
    if len(desk.pages) < 2:
        return None
    choose = "min" if what == "earliest" else "max"
    return _COMPARE.format(titles=list(desk.pages), computed=COMPUTED, choose=choose)
