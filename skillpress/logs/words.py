"""Whether the words of a log are commands or prose, and whether they hold calls that no reader knows.

The first word of a command (``go to desk 1``) is a skill, and the first word of a sentence (``Let me see.``)
is not. A text has one point for each of five marks of prose: a sentence's stop at its end or inside; a
capital and a small letter at its beginning, or a script without capitals; one of ``FUNCTION_WORDS``; at
least ``LONG`` words; and a comma before a space. Code has no points. A text with ``SENTENCE`` points is a
sentence. Words of which ``MOST_SENTENCES`` or more are sentences are prose.

A text is *call-like* if it has markup that programs read as calls: a tag such as ``<run_tool>``, a line such
as ``Action: search``, or JSON with a name or an action. A fenced block is call-like only where no step calls
a tool, since answers in words often show code. The same holds for a text that begins with a tag or with JSON:
beside tools it is an answer in a form, and without them its first word is a part of the form.

Finally, if nearly all texts begin with the same word, this word distinguishes no steps.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from skillpress.environments.calls.steps import TraceStep, action_of

SENTENCE, LONG = 2, 8
MOST_SENTENCES = 0.25
"""Words are prose if at least this share of them are sentences. None of 4,800 actions of our environments is
a sentence; of each writer's turns in the tests, two in three or more are."""
MOST_DISTINCT, DISTINCT_FROM = 0.5, 40
"""Words are not commands if the share of distinct first words reaches the first value, given at least as many
texts as the second. Answers such as ``42`` and ``Paris`` are not sentences, but each begins with another
word."""
MOST_CALL_LIKE = 0.2
"""Maximum share of all steps that may be call-like words."""
NEARLY_ALL, ALIKE_FROM = 0.9, 20
"""A first word distinguishes no steps if the share of steps that begin with it reaches the first value, given
at least as many steps as the second."""
READ, JUDGED, EVERY = 400, 2000, 16
"""Number of characters judged per text; number of texts judged at the beginning of a log; afterwards every
sixteenth is judged."""
SEARCHED, SHOWN = 2000, 60
"""Number of characters of a text that are searched for calls, and of an example in a message."""

FUNCTION_WORDS = frozenset(
    """
    i i'll i'm i've you you're your we we'll we're my our he she his her they their it it's its is are was
    were be been am has have had will would should could can can't don't that this these those there here and
    but or so if because since which who what when where why how not no yes let let's now then also please
    thank thanks as sorry
    """.split()  # noqa: SIM905  a list of seventy words is longer, and no clearer
)

_STOP = re.compile(r"\w[)\]\"'»”’*`]*\s?[.!?…:](?:\s|$)|[。！？：]")
_OPENING = re.compile(
    r"[\W\d_]*(?:[A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ](?:[^\W\d_A-Z]|['’]|\s)"
    r"|[\u0590-\u0fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
_COMMA = re.compile(r"\w[)\"'`]*,\s|[、，]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CODE = re.compile(
    r"\s*(?:[\w.]+\s?[(\[={]|[\w.]+ [-+*/]?= |[{\[<#/]|import \w|from \w+ import|def \w|for \w+ in )"
)
_CALL_LIKE = re.compile(
    r"<\|?(?:[a-z]*(?:tool|function|invoke|action|execute|command|bash)[\w-]*|[a-z]+(?:_[a-z]+)+|[a-z]+=[\w.-]+)"
    r"(?:[ =][^<>]*)?\|?>"
    r"|^\W*(?:action|tool|function|command|call)(?: input| name)?\W{0,3}:"
    r"|^\s*\{[^{}]*\"(?:name|action|tool|function|command|tool_name)\"\s*:|\[TOOL_CALLS?\]",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED = re.compile(
    r"\s*(?:<[/|!?-]{0,3}\s?[A-Za-z][^<>\n]{0,200}>|\{\s*[\"'{\[]|\[\s*[\"'{]|\[/?[A-Z_]{2,}\])"
)
_FENCED = re.compile(r"^\s*```[\w-]+\s*$", re.MULTILINE)


def is_sentence(text: str) -> bool:
    """Whether a text reads like prose."""
    text = text[:READ].strip()
    if _CODE.match(text):
        return False
    words = _WORD.findall(text)
    marks = (
        _STOP.search(text) is not None,
        _OPENING.match(text) is not None,
        any(word.lower().replace("’", "'") in FUNCTION_WORDS for word in words),
        len(words) >= LONG or len(_UNSPACED.findall(text)) >= LONG,
        _COMMA.search(text) is not None,
    )
    return sum(marks) >= SENTENCE


def is_call_like(text: str) -> bool:
    """Whether a text has markup that some program reads as a call."""
    return _CALL_LIKE.search(text[:SEARCHED]) is not None


def is_marked(text: str) -> bool:
    """Whether a text begins with a tag or with JSON."""
    return _MARKED.match(text) is not None


@dataclass
class Words:
    """Statistics of a log's steps in words. Steps that were refused do not count."""

    steps: int = 0
    looked_at: int = 0
    """Steps that were judged, and steps without a text."""
    judged: int = 0
    sentences: int = 0
    call_like: int = 0
    fenced: int = 0
    """Texts with a fenced block that are not call-like."""
    marked: int = 0
    """Other texts that begin with a tag or with JSON."""
    firsts: Counter[str] = field(default_factory=Counter)
    """First words; at most ``JUDGED`` of them."""
    sentence: str = ""
    """The first sentence."""
    call: str = ""
    """The first call-like text."""
    mark: str = ""
    """The first text that begins with a tag or with JSON."""

    def add(self, step: TraceStep) -> None:
        """Count a step in words."""
        if step.refused:
            return
        self.steps += 1
        if self.steps > JUDGED and self.steps % EVERY:
            return
        text = action_of(step)
        self.looked_at += 1
        if not text.strip():
            return
        self.judged += 1
        if len(self.firsts) < JUDGED and (found := _WORD.search(text[:READ])):
            self.firsts[found[0].lower()] += 1
        if is_call_like(text):
            self.call_like += 1
            self.call = self.call or text
        elif _FENCED.search(text[:SEARCHED]):
            self.fenced += 1
            self.call = self.call or text
        elif is_marked(text):
            self.marked += 1
            self.mark = self.mark or text
        elif is_sentence(text):
            self.sentences += 1
            self.sentence = self.sentence or text

    def refusal(self, in_words: int, called: int) -> str | None:
        """Why these words cannot be used as skills; None if nothing is wrong.

        Args:
            in_words: the log's number of steps in words. It is less than ``steps`` if histories repeat.
            called: the number of its steps that call a tool.
        """
        if not self.judged:
            return None
        calls = (self.call_like + (0 if called else self.fenced)) / self.judged
        if calls * in_words >= MOST_CALL_LIKE * (in_words + called):
            return (
                f"{_percent(calls)} of the {in_words:,} steps in words contain a call in an unknown form, "
                f"such as {self.call.strip()[:SHOWN]!r}; --call PATTERN reads calls from the text"
            )
        sentences, counted = self.sentences / self.judged, self.firsts.total()
        if called:
            return None
        if self.marked >= MOST_CALL_LIKE * self.judged:
            share = _percent(self.marked / self.judged)
            return (
                f"no step calls a tool, and {share} of the words begin with a tag or with JSON, such as "
                f"{self.mark.strip()[:SHOWN]!r}, so their first words are not skills; --call PATTERN reads "
                "calls from the text"
            )
        if sentences >= MOST_SENTENCES:
            return (
                f"no step calls a tool, and the words read like prose ({_percent(sentences)} of "
                f"{self.judged:,} texts, such as {self.sentence.strip()[:SHOWN]!r}), so their first words "
                "are not skills"
            )
        if counted >= DISTINCT_FROM and len(self.firsts) >= MOST_DISTINCT * counted:
            return (
                f"no step calls a tool, and the words begin with {len(self.firsts):,} different words in "
                f"{counted:,} texts, so they are not commands"
            )
        return self._alike()

    def _alike(self) -> str | None:
        """Why words that nearly all begin alike are not skills; None if they do not."""
        word, count = max(self.firsts.items(), key=lambda entry: entry[1], default=("", 0))
        if self.looked_at < ALIKE_FROM or count < NEARLY_ALL * self.looked_at:
            return None
        share = _percent(count / self.looked_at)
        return (
            f"no step calls a tool, and {share} of the words begin with {word[:SHOWN]!r}, which "
            f"distinguishes no steps"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
