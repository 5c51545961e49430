"""When a routine is used: what the tasks of its runs have in common, and the tasks of other runs have not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillpress.reports.skill_files.reading import Opening, Use
from skillpress.reports.skill_files.words import common, fixed

FEWEST_WORDS = 3
"""A common form of tasks with fewer words is too general."""
MOST_WORDS = 8
SHARE, MORE = 0.5, 0.1
"""A telling word occurs in at least this share of tasks with the routine, and exceeds tasks without it by
this.
"""
MOST_CLAIMS = 4
"""Number of ways in which uses failed that are listed."""
DIFFERENCE = 0.2
_WORD = re.compile(r"[A-Za-z][A-Za-z-]{3,30}")


@dataclass(frozen=True)
class Situation:
    """What the first messages of the runs with a routine say."""

    form: str
    """Their common form; empty if they share too few words."""
    words: tuple[str, ...]
    """Words that most of these messages have, and that other messages have more rarely."""


def situation(openings: Sequence[Opening], holders: Sequence[int]) -> Situation:
    """The situation of a routine; each distinct task counts once."""
    with_it = _by_task(openings, holders)
    without = _by_task(openings, sorted(set(range(len(openings))) - set(holders)))
    without = {task: text for task, text in without.items() if task not in with_it}
    form = common(with_it.values())
    told = len([word for word in fixed(form) if _WORD.fullmatch(word.strip(".,:;!?"))]) >= FEWEST_WORDS
    return Situation(form if told else "", tuple(_telling(list(with_it.values()), list(without.values()))))


def _by_task(openings: Sequence[Opening], which: Iterable[int]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in which:
        if openings[place].message:
            found.setdefault(openings[place].task or f"run {place}", openings[place].message)
    return found


def _telling(with_it: Sequence[str], without: Sequence[str]) -> list[str]:
    ours, theirs = (
        Counter(word for text in texts for word in _distinct(text)) for texts in (with_it, without)
    )
    shares = {
        word: (count / len(with_it), count / len(with_it) - theirs[word] / max(len(without), 1))
        for word, count in ours.items()
        if count > 1
    }
    told = [word for word, (share, more) in shares.items() if share >= SHARE and more >= MORE]
    return sorted(told, key=lambda word: (-shares[word][1], word))[:MOST_WORDS]


def _distinct(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(re.sub(r"<\w+>", " ", text))}


def failures(uses: Sequence[Use]) -> list[str]:
    """What failed uses did more often than successful ones, in sentences with both counts."""
    groups = [[use for use in uses if use.success is outcome] for outcome in (False, True)]
    if not all(groups):
        return []
    counts = [Counter(claim for use in group for claim in _claims(use, group)) for group in groups]
    sizes = [len(group) for group in groups]
    more = {claim: counts[0][claim] / sizes[0] - counts[1][claim] / sizes[1] for claim in counts[0]}
    told = sorted(
        (claim for claim in more if more[claim] >= DIFFERENCE), key=lambda claim: (-more[claim], claim)
    )
    return [
        f"{claim}: {counts[0][claim]} of {sizes[0]} uses in failed runs, {counts[1][claim]} of {sizes[1]} in "
        "successful ones"
        for claim in told[:MOST_CLAIMS]
    ]


def _claims(use: Use, group: Sequence[Use]) -> list[str]:
    found = [f"followed by {use.follows}" if use.follows else "nothing followed"]
    found += ["a step of it failed"] if use.failed_step else []
    again = sum(other.run == use.run for other in group) > 1
    return [*found, "used more than once in the run"] if again else found
