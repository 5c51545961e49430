"""seg(s, 𝒞) is the fewest phrases that cover s, and the returned cut has that many."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.segmentation import segment, segmentation_cost
from tests.support.skills.corpora import dictionaries, fewest_phrases, sequences

K, L = 3, 4


@given(sequences(K), dictionaries(K, L))
def test_the_cost_is_the_minimum_over_every_way_to_cut(sequence, phrases):
    assert segmentation_cost(sequence, phrases, L) == fewest_phrases(sequence, phrases)


@given(sequences(K, max_size=30), dictionaries(K, L))
def test_the_segmentation_concatenates_to_the_sequence_and_has_seg_parts(sequence, phrases):
    parts = segment(sequence, phrases, L)
    assert sum(parts, ()) == sequence
    assert set(parts) <= phrases
    assert len(parts) == segmentation_cost(sequence, phrases, L)


@given(sequences(K, max_size=30), dictionaries(K, L))
def test_cost_lies_between_ceil_of_length_over_cap_and_length(sequence, phrases):
    assert ceil(len(sequence) / L) <= segmentation_cost(sequence, phrases, L) <= len(sequence)


@given(sequences(K, max_size=30))
def test_proposition_1_singletons_alone_cost_the_length(sequence):
    singletons = frozenset((skill,) for skill in range(K))
    assert segmentation_cost(sequence, singletons, L) == len(sequence)


@given(st.integers(1, 10))
def test_counterexample_of_appendix_a1_equal_length_unequal_cost(quarter):
    steps = 4 * quarter
    phrases = frozenset({("1",), ("2",), ("3",), ("1", "2")})
    assert segmentation_cost(("1", "2") * (steps // 2), phrases, 2) == steps // 2
    assert segmentation_cost(("1", "3", "2", "3") * (steps // 4), phrases, 2) == steps


@given(sequences(K, max_size=20), dictionaries(K, L), dictionaries(K, L))
def test_more_phrases_never_cost_more(sequence, fewer, others):
    assert segmentation_cost(sequence, fewer | others, L) <= segmentation_cost(sequence, fewer, L)


@given(sequences(K, max_size=15), sequences(K, max_size=15), dictionaries(K, L))
def test_cutting_a_sequence_in_two_adds_at_most_l_minus_1(left, right, phrases):
    apart = segmentation_cost(left, phrases, L) + segmentation_cost(right, phrases, L)
    assert segmentation_cost(left + right, phrases, L) <= apart
    assert apart <= segmentation_cost(left + right, phrases, L) + L - 1


@given(sequences(K, max_size=20), dictionaries(K, L))
def test_joint_reversal_and_renaming_change_no_cost(sequence, phrases):
    cost = segmentation_cost(sequence, phrases, L)
    assert segmentation_cost(sequence[::-1], {p[::-1] for p in phrases}, L) == cost
    names = {(tuple("xyz"[skill] for skill in p)) for p in phrases}
    assert segmentation_cost(tuple("xyz"[skill] for skill in sequence), names, L) == cost


def test_a_longer_sequence_may_cost_less():
    phrases = frozenset({("A",), ("B",), ("C",), ("A", "B", "C")})
    assert segmentation_cost(("A", "B"), phrases, 3) == 2
    assert segmentation_cost(("A", "B", "C"), phrases, 3) == 1


def test_among_minimal_segmentations_the_longest_phrase_comes_first():
    phrases = frozenset({("A",), ("B",), ("A", "B"), ("B", "A"), ("A", "B", "A")})
    assert segment(("A", "B", "A", "B"), phrases, 3) == [("A", "B", "A"), ("B",)]


def test_a_sequence_that_nothing_covers_is_refused_by_name():
    with pytest.raises(ValueError, match="'Z'"):
        segment(("A", "Z"), frozenset({("A",)}), 2)
