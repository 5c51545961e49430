"""The exact search finds the optimum of Eq. 4, and otherwise says how far it may be from it."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import pytest
from hypothesis import example, given, settings

from skillpress.skills.corpus import count_numbers
from skillpress.skills.fit import fit
from skillpress.skills.search.exact import best_without_singletons, search_exactly, search_within, total_bits
from skillpress.skills.search.refined import search_refined
from tests.support.skills.corpora import best_dictionary_bits, repetitive
from tests.support.skills.corpora import total_bits as total_bits_of


@settings(max_examples=12)
@given(repetitive(3, parts=2))
@example([(0, 1, 0, 1, 0, 1), (1, 0, 1), (0, 1)] * 15)
def test_it_agrees_with_plain_enumeration(corpus):
    counted = count_numbers(corpus, 3)
    found = search_exactly(counted, 2, 0)
    optimum = best_dictionary_bits(corpus, 3, 2)
    assert total_bits(counted, found.phrases, 2) / len(corpus) == pytest.approx(optimum)
    assert found.lower_bound == pytest.approx(optimum, abs=1e-6)


@settings(max_examples=10)
@given(repetitive(4))
def test_it_is_never_worse_than_the_refined_search(corpus):
    counted = count_numbers(corpus, 4)
    exact = total_bits(counted, search_exactly(counted, 4, 0).phrases, 4)
    assert exact <= total_bits(counted, search_refined(counted, 4, 0).phrases, 4) + 1e-9


@settings(max_examples=8)
@given(repetitive(3, parts=2))
@example([(0, 1, 0, 1, 0, 1), (1, 0, 1), (0, 1)] * 15)
def test_without_lengths_in_the_code_it_agrees_with_plain_enumeration(corpus):
    counted = count_numbers(corpus, 3)
    found = search_within(counted, 2, 60.0, coded_length=1)
    optimum = best_dictionary_bits(corpus, 3, 2, coded_length=1)
    assert total_bits(counted, found.phrases, 2, 1) / len(corpus) == pytest.approx(optimum)
    assert found.lower_bound == pytest.approx(optimum, abs=1e-6)


def test_fifty_copies_of_abcd_are_certified():
    """The issue's example: 2.842 bits, while greedy stays at 3.607."""
    dictionary = fit([("A", "B", "C", "D")] * 50, ("A", "B", "C", "D"), 4, search="exact")
    assert dictionary.description_length == pytest.approx(2.842, abs=5e-4)
    assert dictionary.lower_bound == pytest.approx(dictionary.description_length)
    assert dictionary.learned == (("A", "B", "C", "D"),)


def test_overlapping_phrases_of_three_skills_agree_with_enumeration():
    corpus = [(0, 1, 0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 1)] * 9
    counted = count_numbers(corpus, 2)
    found = total_bits(counted, search_exactly(counted, 3, 0).phrases, 3)
    assert found / len(corpus) == pytest.approx(best_dictionary_bits(corpus, 2, 3))


def test_without_time_it_returns_the_refined_dictionary_and_a_valid_bound():
    corpus = count_numbers([(0, 1, 2, 3), (1, 2, 0, 1, 2), (3, 3, 1, 2), (0, 1, 2)] * 12, 4)
    hurried, optimum = search_within(corpus, 4, 0.0), search_exactly(corpus, 4, 0)
    assert hurried.phrases == search_refined(corpus, 4, 0).phrases
    assert hurried.lower_bound is not None
    assert hurried.lower_bound <= total_bits(corpus, optimum.phrases, 4) / corpus.sequences + 1e-9


@pytest.mark.parametrize("coded_length", [None, 1])
@settings(max_examples=10)
@given(repetitive(2, parts=1))
def test_without_the_duty_to_keep_singletons_it_agrees_with_enumeration(coded_length, corpus):
    """Every set of grams and skills that can cut the corpus, K = 2 and L = 2."""
    pool = [(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    found = best_without_singletons(count_numbers([*corpus, (0, 1, 0)], 2), 2, coded_length)
    costs = []
    for size in range(1, len(pool) + 1):
        for phrases in combinations(pool, size):
            with suppress(ValueError):
                costs.append(total_bits_of([*corpus, (0, 1, 0)], list(phrases), 2, 2, coded_length))
    assert found.lower_bound == pytest.approx(min(costs))
