"""What several texts have in common, by anti-unification over words.

The words that all texts share, in order, stay. Each stretch between them is a place with a name, such as
``<file>``, chosen by what the texts have there; ``[...]`` marks a place that some texts leave empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce

MOST_TEXTS, MOST_WORDS = 60, 60
"""The largest number of texts that are compared, and of words in each."""
_WORD = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+|[\"']")
_PLACE = re.compile(r"<\w+>")
_KINDS = (
    ("number", re.compile(r"[+-]?\d+(?:[.,:]\d+)*")),
    ("address", re.compile(r"['\"]?https?://\S*")),
    ("options", re.compile(r"-.*")),
    ("file", re.compile(
        r"['\"]?(?:~|[\w.@*+-]*/[\w./@*+:\[\]-]*|[\w*-]+\.[A-Za-z]\w{0,5}(?:::?[\w:.\[\]-]+)?)['\"]?"
    )),
)  # fmt: skip


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text; a quoted text is part of its word."""
    return tuple(_WORD.findall(text)[:MOST_WORDS])


def common(texts: Iterable[str]) -> str:
    """The texts' common form; empty if there is no text."""
    split = list(dict.fromkeys(map(words_of, texts)))[:MOST_TEXTS]
    if not split:
        return ""
    shared = reduce(longest_common, split)
    gaps: list[list[tuple[str, ...]]] = [[] for _ in range(len(shared) + 1)]
    for words in split:
        begin = 0
        for number, word in enumerate(shared):
            end = words.index(word, begin)
            gaps[number].append(words[begin:end])
            begin = end + 1
        gaps[-1].append(words[begin:])
    pieces = [_place(gaps[0])]
    for word, gap in zip(shared, gaps[1:], strict=True):
        pieces += [word, _place(gap)]
    return " ".join(piece for piece in pieces if piece)


def fixed(form: str) -> list[str]:
    """The words of a common form that are not places."""
    return [word for word in form.split() if not re.fullmatch(r"\[?<\w+>\]?", word)]


def longest_common(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """The longest common subsequence of words; the leftmost one."""
    size = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for a in reversed(range(len(one))):
        for b in reversed(range(len(other))):
            same = one[a] == other[b]
            size[a][b] = size[a + 1][b + 1] + 1 if same else max(size[a + 1][b], size[a][b + 1])
    a = b = 0
    found = []
    while a < len(one) and b < len(other):
        if one[a] == other[b]:
            found.append(one[a])
            a, b = a + 1, b + 1
        elif size[a + 1][b] >= size[a][b + 1]:
            a += 1
        else:
            b += 1
    return tuple(found)


def _place(gap: Sequence[tuple[str, ...]]) -> str:
    filled = [words for words in gap if words]
    if not filled:
        return ""
    every = [word for words in filled for word in words]
    kinds = [name for name, pattern in _KINDS if all(pattern.fullmatch(word) for word in every)]
    private = set(every) if all(_PLACE.fullmatch(word) for word in every) else set()
    name = private.pop() if len(private) == 1 else f"<{kinds[0] if kinds else 'text'}>"
    return f"[{name}]" if len(filled) < len(gap) else name
