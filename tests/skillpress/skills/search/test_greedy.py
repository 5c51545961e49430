"""The fast greedy search finds what the reference finds, phrase by phrase."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.greedy_reference import greedy_reference
from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import count_numbers
from skillpress.skills.cover import data_bits, dictionary_bits
from skillpress.skills.fit import fit
from skillpress.skills.search.greedy import search_greedily
from tests.support.skills.corpora import markov_chains, repetitive


@settings(max_examples=200)
@given(st.data(), st.integers(1, 5), st.integers(1, 6))
def test_it_accepts_the_phrases_of_the_reference_in_the_same_order(data, alphabet_size, max_phrase_length):
    corpus = data.draw(repetitive(alphabet_size))
    found = search_greedily(count_numbers(corpus, alphabet_size), max_phrase_length, 0)
    assert found.phrases == greedy_reference(corpus, alphabet_size, max_phrase_length)


@settings(max_examples=200)
@given(st.data(), st.integers(1, 4), st.integers(1, 5))
def test_it_follows_the_reference_where_more_sequences_rank_than_judge(
    data, alphabet_size, max_phrase_length
):
    corpus, more = data.draw(repetitive(alphabet_size)), data.draw(repetitive(alphabet_size))
    found = search_greedily(count_numbers(corpus, alphabet_size, more), max_phrase_length, 0)
    expected = greedy_reference(corpus, alphabet_size, max_phrase_length, ranked_with=more)
    assert found.phrases == expected


def test_what_only_ranks_decides_the_order_and_accepts_nothing():
    """40 AB and 30 CD both pay; 20 more CD rank CD first, and EF, which is in no judged sequence, never
    pays."""
    corpus = [(0, 1)] * 40 + [(2, 3)] * 30
    more = [(2, 3)] * 20 + [(4, 5)] * 99
    assert search_greedily(count_numbers(corpus, 6), 2, 0).phrases == [(0, 1), (2, 3)]
    assert search_greedily(count_numbers(corpus, 6, more), 2, 0).phrases == [(2, 3), (0, 1)]


@pytest.mark.parametrize(("alphabet_size", "max_phrase_length"), [(5, 4), (26, 4), (40, 8)])
def test_it_agrees_with_the_reference_on_a_corpus_of_markov_chains(alphabet_size, max_phrase_length):
    corpus = markov_chains(alphabet_size, 60)
    found = search_greedily(count_numbers(corpus, alphabet_size), max_phrase_length, 0)
    assert found.phrases == greedy_reference(corpus, alphabet_size, max_phrase_length)
    assert len(found.phrases) >= 5


def test_it_serves_the_largest_alphabet_and_the_longest_phrases():
    """4096 skills and L = 16: a routine of 16 skills that 400 sequences share becomes one phrase."""
    rng = np.random.default_rng(0)
    routine = tuple(rng.integers(0, 4096, 16).tolist())
    corpus = [(*rng.integers(0, 4096, 4).tolist(), *routine) for _ in range(400)]
    found = search_greedily(count_numbers(corpus, 4096), 16, 0)
    assert routine in found.phrases


@given(repetitive(3), st.randoms(use_true_random=False))
def test_the_fitted_dictionary_does_not_depend_on_the_order_of_the_corpus(corpus, random):
    named = [tuple("xyz"[skill] for skill in sequence) for sequence in corpus]
    assert fit(random.sample(named, len(named)), "xyz", 4) == fit(named, "xyz", 4)


def test_compiled_bits_equal_the_interpreted_ones_to_the_last_bit():
    """The reason why ``bit-exact`` holds: log2 and the order of the additions agree."""
    compiled_log2 = compiled(_log2)
    for number in [*range(1, 5000), 10**6, 10**9 + 7]:
        assert compiled_log2(number) == log2(number)
        assert data_bits(3 * number, number) == data_bits.py_func(3 * number, number)
        assert dictionary_bits(7, number, 5, 4) == dictionary_bits.py_func(7, number, 5, 4)


def test_phrases_longer_than_a_16_bit_set_of_lengths_are_refused():
    with pytest.raises(ValueError, match="at most 16"):
        fit([("A", "B")], ("A", "B"), 17)


def _log2(number: int) -> float:
    return log2(number)
