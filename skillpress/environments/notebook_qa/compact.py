"""Question answering for a policy of about 100,000 weights trained from scratch.

It has no words for the names in the world, so it reads only what can do without them. It sees the question's
common words, with its entities by number. For each title found it sees how many words of the question the
title matches, and whether the page was read; for each possible answer its kind, its page, and how many words
of the question are around it. One prompt, with its sections:

    ask which magazine was started first e1 or e2 ?
    titles 1 new n4 2 read n3 3 new n1
    answers 1 title 2 n4 2 name 2 n4 3 date 2 n1 asked
    did search question ; read title 2 ;

An answer is a short action (``actions.py``), one token per word, followed by ``<end>``. So the policy can
search for the entities of the question and for what it has found, read, and compare the first years that
pages name. It can answer with a name, a date, a number, a quotation, *yes* or *no*. It cannot compose an
answer, calculate, or understand a page.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.notebook_qa.desk import (
    MOST_CANDIDATES,
    MOST_ENTITIES,
    MOST_TITLES,
    Desk,
    DeskState,
)
from skillpress.environments.text.prompts import last_turns, own_state
from skillpress.environments.text.words import UNKNOWN, ended_vocabulary, split_words

MOST_NEAR = 6
"""The largest number of the question's words that is shown for a candidate; larger numbers are shown as this
one."""
QUESTION_WORDS = 32
"""Number of words of the question that are shown, counted from its beginning."""
ACTION_WORDS = 3
_SECTIONS = ("ask", "titles", "answers", "did", ";", "failed")
_MARKS = ("new", "read", "asked", "name", "date", "number", "quoted", "title")
_VERBS = (
    *("search", "question", "entity", "candidate", "compute", "earliest", "latest", "note", "answer"),
    *("yes", "no"),
)
_QUESTION = (
    "what which who whom whose where when how many much long far old tall are is was were be been do",
    "does did has have had can the a an of for on at by with from to in or and that this both same also",
    "than one first last older younger earlier later before after more most larger longer taller",
    "started formed founded born died year date day month years age city country state county town",
    "located place nationality american british actor actress director film movie series show song",
    "album band singer group member author writer book novel magazine character game team league player",
    "coach club company owned produced released written directed starring played known called named",
    "name university school college war battle king president government position occupation profession",
    "genre type kind language river mountain airport population people total between during part based",
    "his her their its he she it not only other two three won award real full created",
)
"""The words in which questions are asked, grouped by what they ask for."""


@dataclass(frozen=True)
class CompactRendering:
    """The prompt described in the module's docstring."""

    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """A prompt of at most :func:`longest` words, all of them from :func:`all_words`."""
        desk = own_state(state, DeskState).desk
        words = ["ask", *_asked(desk)[:QUESTION_WORDS], "titles", *_titles(desk), "answers", *_answers(desk)]
        words += ["did", *self._did(state)]
        return " ".join(word if word in _KNOWN else UNKNOWN for word in words)

    def continuation(self, state: AgentState) -> str:
        """The current titles and answers."""
        desk = own_state(state, DeskState).desk
        words = ["failed"] if state.info.invalid else []
        return " ".join([*words, "titles", *_titles(desk), "answers", *_answers(desk)])

    def response(self, action: str, info: Info) -> str:
        """The short action itself."""
        return action

    def _did(self, state: AgentState) -> list[str]:
        turns = last_turns(state, self.history)
        return [word for turn in turns for word in (*turn.action.split()[:ACTION_WORDS], ";")]


def _asked(desk: Desk) -> list[str]:
    """The question, with ``e1`` in place of its first entity."""
    text = desk.question
    for number, entity in enumerate(desk.entities, 1):
        text = text.replace(entity, f" e{number} ", 1)
    return split_words(text)


def _titles(desk: Desk) -> list[str]:
    words: list[str] = []
    for number, found in enumerate(desk.titles, 1):
        words += [str(number), "read" if found.title in desk.pages else "new", _near(found.near)]
    return words


def _answers(desk: Desk) -> list[str]:
    words: list[str] = []
    pages = {found.title: str(number) for number, found in enumerate(desk.titles, 1)}
    for number, candidate in enumerate(desk.answers, 1):
        page = pages.get(candidate.page, UNKNOWN)
        words += [str(number), candidate.kind, page, _near(candidate.near)]
        words += ["asked"] if candidate.asked else []
    return words


def _near(count: int) -> str:
    return f"n{min(count, MOST_NEAR)}"


def all_words() -> tuple[str, ...]:
    """Every word of prompts and answers except ``END``, each once."""
    numbers = map(str, range(1, max(MOST_CANDIDATES, MOST_TITLES) + 1))
    near = (_near(count) for count in range(MOST_NEAR + 1))
    asked = " ".join(_QUESTION).split()
    entities = (f"e{number}" for number in range(1, MOST_ENTITIES + 1))
    return tuple(dict.fromkeys((*numbers, *near, *entities, *_SECTIONS, *_MARKS, *_VERBS, *asked, UNKNOWN)))


_KNOWN = frozenset(all_words())


def longest(history: int) -> int:
    """Number of words in the longest prompt."""
    return len(("ask", "did")) + QUESTION_WORDS + _DESK + history * (ACTION_WORDS + 1)


_DESK = len(("titles", "answers")) + 3 * MOST_TITLES + 5 * MOST_CANDIDATES


def vocabulary(history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    return ended_vocabulary(all_words(), longest(history), 1 + _DESK)
