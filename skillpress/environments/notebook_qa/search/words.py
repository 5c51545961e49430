"""The words of texts and queries, and the sentence of a text that best answers a query.

A query reaches the index only as a list of words, so tantivy's query language (``AND``, ``title:``,
``"..."~3``, ``[* TO *]``) is never parsed.
"""

from __future__ import annotations

import re
from functools import cache

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from skillpress.environments.notebook_qa.search.texts import LONGEST_QUERY, QUERY_WORDS
from skillpress.environments.text.words import encodable

LONGEST_WORD = 40
"""Maximum number of bytes of a word; longer ones are in no index and in no query."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@cache
def text_analyzer() -> TextAnalyzer:
    """Splits texts into words: Unicode letters and digits, lower case, accents folded, English stems."""
    return _folded().filter(Filter.stemmer("english")).build()


@cache
def _telling_analyzer() -> TextAnalyzer:
    """The same analyzer without words such as *the* and *of*."""
    return _folded().filter(Filter.stopword("english")).filter(Filter.stemmer("english")).build()


def _folded() -> TextAnalyzerBuilder:
    whole = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(LONGEST_WORD + 1))
    return whole.filter(Filter.lowercase()).filter(Filter.ascii_fold())


def query_words(query: str) -> tuple[str, ...]:
    """The different words of a query in its order, at most :data:`QUERY_WORDS`.

    Very common words are left out, unless the query has no others (*To Be or Not to Be*).
    """
    text = encodable(query[:LONGEST_QUERY])
    words = _telling_analyzer().analyze(text) or text_analyzer().analyze(text)
    return tuple(dict.fromkeys(words))[:QUERY_WORDS]


def snippet(text: str, words: tuple[str, ...], limit: int) -> str:
    """The sentence of a text that contains most of the words (the first such sentence), and the text after
    it.

    Args:
        words: words of the query, as returned by :func:`query_words`.
        limit: maximum number of characters. The text is cut between words, and an ellipsis marks the cut.
    """
    sentences = _SENTENCE.split(" ".join(encodable(text).split()))
    asked = set(words)
    found = [len(asked.intersection(text_analyzer().analyze(sentence))) for sentence in sentences]
    first = found.index(max(found))
    shown = " ".join(sentences[first:])
    opening = "… " if first else ""
    if len(opening) + len(shown) <= limit:
        return opening + shown
    cut = shown[: limit - len(opening) - 2]
    return f"{opening}{cut.rsplit(' ', 1)[0]} …"
