"""Shared by tests of the skills: strategies for corpora, and brute-force results."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, product

import numpy as np
from hypothesis import strategies as st

from skillpress.skills.corpus import Phrase
from skillpress.skills.description_length import description_length
from skillpress.skills.segmentation import segmentation_cost


def sequences(alphabet_size: int, max_size: int = 12) -> st.SearchStrategy[Phrase]:
    """Sequences of skill numbers, including the empty sequence."""
    return st.lists(st.integers(0, alphabet_size - 1), max_size=max_size).map(tuple)


def dictionaries(alphabet_size: int, max_phrase_length: int) -> st.SearchStrategy[frozenset[Phrase]]:
    """Sets of phrases that hold every singleton."""
    phrases = st.lists(st.integers(0, alphabet_size - 1), min_size=1, max_size=max_phrase_length)
    singletons = {(skill,) for skill in range(alphabet_size)}
    return st.lists(phrases.map(tuple), max_size=8).map(lambda learned: frozenset(singletons.union(learned)))


def repetitive(alphabet_size: int, parts: int = 6) -> st.SearchStrategy[list[Phrase]]:
    """Corpora made of a few routines of up to 5 skills, so that phrases pay and repeat within a sequence."""

    def arranged(routines: list[Phrase]) -> st.SearchStrategy[list[Phrase]]:
        sequence = st.lists(st.sampled_from(routines), max_size=parts).map(lambda chosen: sum(chosen, ()))
        return st.lists(sequence, min_size=1, max_size=40)

    return st.lists(sequences(alphabet_size, max_size=5), min_size=1, max_size=4).flatmap(arranged)


def markov_chains(alphabet_size: int, sequences: int) -> list[Phrase]:
    """Sequences in which each skill is mostly followed by one of two others."""
    rng = np.random.default_rng(alphabet_size)
    after = rng.integers(0, alphabet_size, (alphabet_size, 2))
    corpus = []
    for length in rng.integers(5, 40, sequences):
        sequence = [int(rng.integers(alphabet_size))]
        while len(sequence) < length:
            usual = rng.random() < 0.9
            following = after[sequence[-1], rng.integers(2)] if usual else rng.integers(alphabet_size)
            sequence.append(int(following))
        corpus.append(tuple(sequence))
    return corpus


def fewest_phrases(sequence: Phrase, phrases: frozenset[Phrase]) -> int:
    """seg, by trying all 2^(n-1) ways to cut the sequence."""
    if not sequence:
        return 0
    best = len(sequence)
    for inner in product((False, True), repeat=len(sequence) - 1):
        cuts = [0, *(place for place, cut in enumerate(inner, 1) if cut), len(sequence)]
        parts = [sequence[a:b] for a, b in pairwise(cuts)]
        if all(part in phrases for part in parts):
            best = min(best, len(parts))
    return best


def best_dictionary_bits(
    corpus: list[Phrase], alphabet_size: int, max_phrase_length: int, coded_length: int | None = None
) -> float:
    """min 𝓛_BDL over every set of n-grams of the corpus (no other phrase can shorten anything)."""
    grams = {
        s[a : a + n] for s in corpus for n in range(2, max_phrase_length + 1) for a in range(len(s) - n + 1)
    }
    singletons = [(skill,) for skill in range(alphabet_size)]
    return min(
        total_bits(corpus, [*singletons, *learned], alphabet_size, max_phrase_length, coded_length)
        for size in range(len(grams) + 1)
        for learned in combinations(sorted(grams), size)
    )


def total_bits(
    corpus: list[Phrase],
    phrases: list[Phrase],
    alphabet_size: int,
    max_phrase_length: int,
    coded_length: int | None = None,
) -> float:
    """𝓛_BDL of a dictionary by the definition; ``coded_length`` is L in the formula, if it differs."""
    members = frozenset(phrases)
    segments = sum(
        times * segmentation_cost(s, members, max_phrase_length) for s, times in Counter(corpus).items()
    )
    return description_length(
        sum(map(len, phrases)),
        len(phrases),
        segments,
        len(corpus),
        alphabet_size,
        coded_length or max_phrase_length,
    )
