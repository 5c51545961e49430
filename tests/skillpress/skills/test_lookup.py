"""Looking segments up gives the same as the dynamic programme over phrases."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.corpus import count_numbers
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.lookup import costs, make_table, uses
from skillpress.skills.segmentation import segment, segmentation_cost
from tests.support.skills.corpora import dictionaries, sequences

SIZES = [(3, 4), (31, 4), (32, 4), (200, 3), (2, 10), (1, 1)]
"""(K, L); windows of the third, fourth and fifth do not fit the table, so that a trie is walked."""


@given(st.data(), st.sampled_from(SIZES))
def test_costs_are_segmentation_costs(data, sizes):
    alphabet_size, longest = sizes
    phrases = sorted(data.draw(dictionaries(alphabet_size, longest)))
    corpus = data.draw(st.lists(st.one_of(sequences(alphabet_size, 20), spliced(phrases)), min_size=1))
    counted = count_numbers(corpus, alphabet_size)
    found = costs(counted, make_table(phrases, alphabet_size, longest)).tolist()
    assert found == [segmentation_cost(s, frozenset(phrases), longest) for s, _ in counted]


@given(st.data(), st.sampled_from(SIZES))
def test_uses_count_the_phrases_of_the_segmentations(data, sizes):
    alphabet_size, longest = sizes
    phrases = sorted(data.draw(dictionaries(alphabet_size, longest)))
    corpus = data.draw(st.lists(st.one_of(sequences(alphabet_size, 20), spliced(phrases)), min_size=1))
    counted = Counter(part for s in corpus for part in segment(s, frozenset(phrases), longest))
    found = uses(count_numbers(corpus, alphabet_size), make_table(phrases, alphabet_size, longest))
    assert found == [counted[phrase] for phrase in phrases]


def test_a_dictionary_costs_many_sequences_in_the_order_given():
    dictionary = SkillDictionary(("A", "B"), 2, (("A",), ("B",), ("A", "B")), (0, 0, 1), 1, "greedy", 0)
    assert dictionary.costs([("A", "B"), (), ("B", "A"), ("A", "B")]) == [1, 0, 2, 1]
    assert dictionary.costs([]) == []
    with pytest.raises(ValueError, match="'C' is not in the alphabet"):
        dictionary.costs([("C",)])


def spliced(phrases):
    """Sequences that are likely to need few segments."""
    return st.lists(st.sampled_from(phrases), max_size=6).map(lambda parts: sum(parts, ()))
