"""Segment many sequences under one dictionary.

Which phrases start at a place depends on the next L skills only. If these fit a number of 20 bits (such as L
= 4 and up to 31 skills), a table answers for every such window with one bit per length. The scan over a
sequence, from its end, then takes one lookup and a minimum per skill. For larger alphabets or longer phrases
the code walks a trie at every place instead: up to L steps, several times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import END, Corpus, Ints, Longs, Phrase, Shorts

WINDOW_BITS = 20
"""The widest window, in bits, that is looked up in a table (2 MiB)."""


class Trie(NamedTuple):
    """The phrases as paths; node 0 is the empty phrase."""

    children: Ints
    """(inner nodes, K) the node that a skill leads to; -1 if no phrase continues there."""
    row: Ints
    """(nodes,) an inner node's row of ``children``; -1 for a leaf."""
    phrase: Ints
    """(nodes,) the phrase that ends here; -1 if none does."""


class PhraseTable(NamedTuple):
    """The phrases of a dictionary, in the form that :func:`costs` and :func:`uses` need."""

    phrases: int
    """|𝒞|."""
    max_phrase_length: int
    skill_bits: int
    """Bits per skill in a window; 0 if windows are too wide for a table."""
    windows: Shorts
    """(2^(L * skill_bits),) bit l - 1 is set if a window's first l skills are a phrase."""
    trie: Trie


def make_table(phrases: Sequence[Phrase], alphabet_size: int, max_phrase_length: int) -> PhraseTable:
    """The table of a dictionary that holds every singleton."""
    bits = alphabet_size.bit_length()
    if bits * max_phrase_length > WINDOW_BITS:
        bits = 0
    windows = np.ones(1 << bits * max_phrase_length, np.uint16)
    for phrase in phrases if bits else ():
        code = 0
        for skill in phrase:
            code = code << bits | skill + 1
        free = bits * (max_phrase_length - len(phrase))
        windows[code << free : code + 1 << free] |= 1 << len(phrase) - 1
    return PhraseTable(
        phrases=len(phrases),
        max_phrase_length=max_phrase_length,
        skill_bits=bits,
        windows=windows,
        trie=_make_trie(phrases, alphabet_size),
    )


def costs(corpus: Corpus, table: PhraseTable) -> Ints:
    """seg(s, 𝒞) of the corpus's distinct sequences, shape (D,)."""
    return _fewest(corpus.skills, _started(corpus, table))[corpus.starts[:-1]]


def uses(corpus: Corpus, table: PhraseTable) -> list[int]:
    """How often each phrase occurs in the minimal segmentation of the corpus, in 𝒞's order.

    Among several minimal segmentations it takes the one of ``segmentation.segment``: longest phrase first.
    """
    started = _started(corpus, table)
    backward = _fewest(corpus.skills, started)
    counts = _count_uses(
        corpus.skills,
        corpus.starts,
        weights=corpus.weights,
        started=started,
        backward=backward,
        trie=table.trie,
        phrases=table.phrases,
    )
    return [int(count) for count in counts]


def _make_trie(phrases: Sequence[Phrase], alphabet_size: int) -> Trie:
    nodes: dict[Phrase, int] = {(): 0}
    for phrase in phrases:
        for end in range(1, len(phrase) + 1):
            nodes.setdefault(phrase[:end], len(nodes))
    inner = {node[:-1] for node in nodes if node}
    row = np.full(len(nodes), -1, np.int32)
    row[[nodes[prefix] for prefix in inner]] = np.arange(len(inner))
    children = np.full((len(inner), alphabet_size), -1, np.int32)
    for prefix, node in nodes.items():
        if prefix:
            children[row[nodes[prefix[:-1]]], prefix[-1]] = node
    ends = np.full(len(nodes), -1, np.int32)
    ends[[nodes[phrase] for phrase in phrases]] = np.arange(len(phrases))
    return Trie(children, row, ends)


def _started(corpus: Corpus, table: PhraseTable) -> Shorts:
    """(places,) bit l - 1 is set if a phrase of l skills starts there."""
    if table.skill_bits:
        width = table.skill_bits * (table.max_phrase_length - 1)
        return _look_up(corpus.skills, table.windows, table.skill_bits, width)
    return _walk(corpus.skills, table.trie)


@compiled
def _look_up(skills: Ints, windows: Shorts, skill_bits: int, width: int) -> Shorts:
    started = np.empty(len(skills), np.uint16)
    window = 0
    for place in range(len(skills) - 1, -1, -1):
        window = (window >> skill_bits) | (int(skills[place] + 1) << width)
        started[place] = windows[window]
    return started


@compiled
def _walk(skills: Ints, trie: Trie) -> Shorts:
    started = np.zeros(len(skills), np.uint16)
    for place in range(len(skills)):
        node = np.int32(0)
        end = place
        while trie.row[node] >= 0 and skills[end] != END:
            node = trie.children[trie.row[node], skills[end]]
            if node < 0:
                break
            if trie.phrase[node] >= 0:
                started[place] |= np.uint16(1 << (end - place))
            end += 1
    return started


@compiled
def _fewest(skills: Ints, started: Shorts) -> Ints:
    """(places,) fewest segments from each place to the end of its sequence."""
    backward = np.empty(len(skills), np.int32)
    fewest = np.int32(0)
    for place in range(len(skills) - 1, -1, -1):
        if skills[place] == END:
            fewest = np.int32(0)
        else:
            bits = started[place] >> 1
            target = place + 2
            while bits:
                if bits & 1:
                    fewest = min(fewest, backward[target])
                bits >>= 1
                target += 1
            fewest += np.int32(1)
        backward[place] = fewest
    return backward


@compiled
def _count_uses(
    skills: Ints, starts: Longs, weights: Longs, started: Shorts, backward: Ints, trie: Trie, phrases: int
) -> Longs:
    counts = np.zeros(phrases, np.int64)
    for row in range(len(weights)):
        place = starts[row]
        while backward[place]:
            length = 16
            while not (
                started[place] >> (length - 1) & 1 and backward[place + length] == backward[place] - 1
            ):
                length -= 1
            node = np.int32(0)
            for end in range(place, place + length):
                node = trie.children[trie.row[node], skills[end]]
            counts[trie.phrase[node]] += weights[row]
            place += length
    return counts
