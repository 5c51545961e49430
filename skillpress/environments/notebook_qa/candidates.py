"""Short answers that a text offers: names, dates, numbers and quotations, the likeliest first.

A policy trained from scratch has no words for the names in the world. It answers by number, from a list that
is made here from surface forms alone: the more words of the question are around a candidate, the earlier it
is in the list. Answers of other forms (``sovereignty``, ``from 1986 to 2013``) are never in the list. It can
contain about three quarters of HotpotQA's answers, including *yes* and *no*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from skillpress.environments.notebook_qa.answers import normalized
from skillpress.environments.text.words import word_set

Kind = Literal["name", "date", "number", "quoted", "title"]

LONGEST_CANDIDATE = 80
"""Maximum number of characters of a candidate."""
AROUND = 60
"""Number of characters before and after a candidate in which the question's words are counted."""
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WORD = r"[A-Z0-9][\w'’.&-]*"
_LINK = r"(?: (?:of|the|de|von|van|and|for|in|to|on|at|&|la|le|du|del|und))*"
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("quoted", re.compile(r"[\"“](?P<found>[^\"”]{2,60})[\"”]")),
    ("date", re.compile(rf"\b(?P<found>{_MONTH}(?: \d{{1,2}})?,? \d{{4}}|\d{{1,2}} {_MONTH},? \d{{4}})")),
    ("number", re.compile(r"\b(?P<found>\d[\d,.]*\d|\d)\b")),
    ("number", re.compile(r"\b(?P<found>\d[\d,.]* [a-z]+)\b")),
    ("name", re.compile(rf"(?P<found>{_WORD}(?:{_LINK} {_WORD})*)")),
    ("name", re.compile(rf"(?P<found>{_WORD}(?: {_WORD})*)")),
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*")
_CONTENT = re.compile(r"[a-z0-9]{3,}")
_COMMON = word_set(
    "the and for was were that which who what when where how did does has had his",
    "her its with from this are been one two name called known both same also first more most",
)
"""Words of at least three letters that do not indicate a text's topic."""
_OPENERS = word_set(
    "it he she they we i in on at as by his her its their this that these those there",
    "after before during since while when where who which and but or if for from to of",
    "with also both however although one",
)
"""Capitalised words at the beginning of a sentence that are not names."""


@dataclass(frozen=True)
class Candidate:
    """A short answer and the evidence for it."""

    text: str
    kind: Kind
    page: str
    """The title of the page that offers it."""
    near: int
    """Number of different words of the question around it in its sentence."""
    asked: bool
    """Whether it occurs in the question."""


def content_words(text: str) -> frozenset[str]:
    """The words that indicate a text's topic, in lower case and cut to five letters, so that ``directed`` and
    ``director`` agree."""
    return frozenset(word[:5] for word in _CONTENT.findall(text.lower()) if word not in _COMMON)


def candidates(question: str, page: str, text: str) -> list[Candidate]:
    """The answers that a page offers, in the order of their occurrence; the title is the first.

    Two candidates that are equal after normalisation become one, with the larger ``near``.
    """
    asked, about = f" {normalized(question)} ", content_words(question)
    best: dict[str, Candidate] = {}
    for kind, found, around in _found(page, text):
        key = normalized(found)
        if not key or len(found) > LONGEST_CANDIDATE or (kind == "name" and key in _OPENERS):
            continue
        near = len(about & content_words(around) - content_words(found))
        earlier = best.get(key)
        if earlier is None or near > earlier.near:
            best[key] = Candidate(
                text=found,
                kind=earlier.kind if earlier else kind,
                page=page,
                near=near,
                asked=f" {key} " in asked,
            )
    return list(best.values())


def ranked(found: list[Candidate]) -> list[Candidate]:
    """The candidates of several pages, each once: first the pages' titles, then candidates that do not occur
    in the question, by ``near``, then the others."""

    def place(candidate: Candidate) -> tuple[bool, bool, int]:
        return candidate.kind != "title", candidate.asked, -candidate.near

    best: dict[str, Candidate] = {}
    for candidate in sorted(found, key=place):
        best.setdefault(normalized(candidate.text), candidate)
    return list(best.values())


def _found(page: str, text: str) -> Iterator[tuple[Kind, str, str]]:
    """Yield (kind, candidate, text around it in its sentence)."""
    yield "title", re.sub(r" \([^)]*\)$", "", page), text[: 2 * AROUND]
    for sentence in _SENTENCE.findall(text):
        for kind, pattern in _PATTERNS:
            for match in pattern.finditer(sentence):
                around = sentence[max(0, match.start() - AROUND) : match.end() + AROUND]
                yield kind, match["found"].strip(" .,'"), around
