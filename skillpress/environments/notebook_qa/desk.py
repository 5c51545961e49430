"""An agent's desk: the question's entities, titles found, pages read, and possible answers.

It is updated from the tools' results, so the agent has seen all of it. Renderings choose what to show of
it, and short actions name its items by number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillpress.environments.notebook_qa.candidates import (
    Candidate,
    candidates,
    content_words,
    ranked,
)
from skillpress.environments.text.words import word_set

MOST_ENTITIES, MOST_TITLES, MOST_CANDIDATES = 4, 8, 12
"""Maximum numbers of items that can be named by number: entities of the question, titles found (the first
ones), and candidates (the likeliest on the pages read)."""
MOST_PAGES = 256
"""Maximum number of pages on the desk, the first ones read. Code can read thousands of pages, and the same
page under many spellings of its title."""
_ENTITY = re.compile(
    r"[\"“](?P<quoted>[^\"”]{2,60})[\"”]"
    r"|(?P<name>[A-Z0-9][\w'’.-]*(?:(?: (?:of|the|de|von|van|and|&))* [A-Z0-9][\w'’.-]*)*)"
)
_QUESTION_WORDS = word_set(
    "who what which when where how are is was were do does",
    "did in the a an of for on at by with from to",
)
"""Capitalised words at the beginning of a question that are not part of a name."""


@dataclass(frozen=True)
class FoundTitle:
    """A title found by a search."""

    title: str
    near: int
    """Number of different words of the question in its title and its snippet."""


@dataclass(frozen=True)
class Desk:
    """The items on the desk. Every change creates a new object."""

    question: str
    entities: tuple[str, ...]
    """Names and quotations in the question."""
    titles: tuple[FoundTitle, ...] = ()
    """The first titles, in the order in which they were found."""
    pages: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    """Maps the titles of the pages read, in that order, to the answers that they offer."""
    computed: tuple[str, ...] = ()
    """Titles returned by comparisons, the latest first."""

    @property
    def answers(self) -> tuple[Candidate, ...]:
        """The answers that can be named: results of comparisons, then the likeliest candidates."""
        offered = [candidate for page in self.pages.values() for candidate in page]
        first = [Candidate(text=text, kind="title", page=text, near=0, asked=True) for text in self.computed]
        return tuple((first + ranked(offered))[:MOST_CANDIDATES])


@dataclass(frozen=True)
class DeskState:
    """What a rendering may show. The agent has seen all of it."""

    question: str
    desk: Desk
    steps: int
    """Number of steps taken so far."""
    steps_left: int


def first_desk(question: str) -> Desk:
    """The desk with only the question."""
    found = [match["quoted"] or match["name"] for match in _ENTITY.finditer(question)]
    entities = [_without_question_words(name) for name in found]
    return Desk(question, tuple(dict.fromkeys(filter(None, entities)))[:MOST_ENTITIES])


def searched(desk: Desk, hits: Sequence[tuple[str, str]]) -> Desk:
    """The desk after a search that returned these (title, snippet)."""
    if len(desk.titles) >= MOST_TITLES:
        return desk
    about, known = content_words(desk.question), {found.title for found in desk.titles}
    new = [
        FoundTitle(title, len(about & content_words(f"{title} {snippet}")))
        for title, snippet in dict(hits).items()
        if title not in known
    ]
    return replace(desk, titles=(*desk.titles, *new)[:MOST_TITLES])


def read(desk: Desk, title: str, text: str) -> Desk:
    """The desk after a page was read."""
    if title in desk.pages or len(desk.pages) >= MOST_PAGES:
        return desk
    offered = tuple(candidates(desk.question, title, text))
    return replace(desk, pages={**desk.pages, title: offered})


def computed(desk: Desk, title: str) -> Desk:
    """The desk after a comparison returned a title."""
    return replace(desk, computed=tuple(dict.fromkeys((title, *desk.computed)))[:MOST_CANDIDATES])


def _without_question_words(name: str) -> str:
    """The name without question words: ``Are Local H`` becomes ``Local H``."""
    words = name.split()
    while words and words[0].lower() in _QUESTION_WORDS:
        words.pop(0)
    return " ".join(words)
