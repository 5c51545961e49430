"""The greedy search follows its specification step by step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.greedy_reference import greedy_reference
from skillpress.skills.description_length import description_length
from tests.support.skills.corpora import best_dictionary_bits, sequences, total_bits

K, L = 3, 4
A, B, C, D = range(4)

corpora = st.lists(sequences(K, max_size=10), min_size=1, max_size=12)


def singletons(alphabet_size: int) -> list[tuple[int, ...]]:
    return [(skill,) for skill in range(alphabet_size)]


@given(corpora)
def test_greedy_is_never_worse_than_singletons(corpus):
    learned = greedy_reference(corpus, K, L)
    skills = sum(map(len, corpus))
    plain = description_length(K, K, skills, len(corpus), K, L)
    assert total_bits(corpus, singletons(K) + learned, K, L) <= plain + 1e-12


@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_is_irrelevant(corpus, random):
    shuffled = random.sample(corpus, len(corpus))
    assert greedy_reference(shuffled, K, L) == greedy_reference(corpus, K, L)


@given(corpora)
def test_phrases_are_new_and_hold_2_to_l_skills(corpus):
    learned = greedy_reference(corpus, K, L)
    assert len(set(learned)) == len(learned)
    assert all(2 <= len(phrase) <= L for phrase in learned)


@pytest.mark.parametrize("coded_length", [None, 1])
@settings(max_examples=30)
@given(st.lists(sequences(2, max_size=6), min_size=1, max_size=8))
def test_greedy_is_never_better_than_the_best_of_all_dictionaries(coded_length, corpus):
    phrases = singletons(2) + greedy_reference(corpus, 2, 2, coded_length)
    found = total_bits(corpus, phrases, 2, 2, coded_length)
    assert found >= best_dictionary_bits(corpus, 2, 2, coded_length) - 1e-9


@pytest.mark.parametrize(
    ("times", "with_lengths", "without"), [(5, [], []), (6, [], [(A, B)]), (7, [(A, B)], [(A, B)])]
)
def test_a_phrase_whose_length_costs_nothing_pays_earlier(times, with_lengths, without):
    """K = 5 and 40 skills: AB costs 2 log2 5 (+ log2 4) and 40 log2 (6/5), each use saves log2 6.

    That is 15.17 (17.17) bits against 2.585 a use: six uses (seven) pay.
    """
    rest = 40 - 2 * times
    corpus = [(A, B)] * times + [(skill,) for skill in range(5)] * (rest // 5) + [(C,)] * (rest % 5)
    assert greedy_reference(corpus, 5, L) == with_lengths
    assert greedy_reference(corpus, 5, L, coded_length=1) == without


def test_the_most_frequent_pair_is_accepted_first_and_its_parts_stay():
    """AB occurs 40 times, CD 20; both pay, and no longer phrase does (each sequence is one pair)."""
    corpus = [(C, D)] * 20 + [(A, B)] * 40
    assert greedy_reference(corpus, 4, 2) == [(A, B), (C, D)]


def test_pairs_of_equal_count_are_tried_in_the_order_of_the_merged_phrase():
    corpus = [(C, D)] * 30 + [(A, B)] * 30
    assert greedy_reference(corpus, 4, 2) == [(A, B), (C, D)]


def test_adjacent_pairs_are_counted_with_overlap_but_replaced_without():
    """Ten DDDD count DD 30 times (20 without overlap), so DD is tried before the 25 AB."""
    corpus = [(A, B)] * 25 + [(D, D, D, D)] * 10
    assert greedy_reference(corpus, 4, 2) == [(D, D), (A, B)]


def test_n_copies_of_abcd_grow_the_whole_phrase_and_keep_what_it_was_built_from():
    """50 copies: AB first, then (count 50 each) ABC before CD, then ABCD: K + 3 phrases in all."""
    learned = greedy_reference([(A, B, C, D)] * 50, 4, 4)
    assert learned == [(A, B), (A, B, C), (A, B, C, D)]
    assert total_bits([(A, B, C, D)] * 50, singletons(4) + learned, 4, 4) == pytest.approx(3.607, abs=5e-4)


def test_nothing_is_merged_where_no_merge_pays():
    """The paper's literal benchmark is such a case: 10 random sequences of 2-6 skills."""
    assert greedy_reference([(A, B), (B, A), (C, A)], 4, 4) == []


@pytest.mark.parametrize(("alphabet_size", "max_phrase_length"), [(1, 4), (2, 1)])
def test_one_skill_or_phrases_of_length_one_leave_the_singletons(alphabet_size, max_phrase_length):
    assert greedy_reference([(0,) * 12] * 20, alphabet_size, max_phrase_length) == []


def test_empty_sequences_share_the_dictionarys_cost_and_need_no_segments():
    assert greedy_reference([(), ()], 3, 4) == []
