"""The refined search starts where greedy ends and never makes a dictionary worse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.skills.corpus import Phrase, count_numbers
from skillpress.skills.fit import fit
from skillpress.skills.grams import number_grams, phrases_of
from skillpress.skills.pruning import prune_everything
from skillpress.skills.search.exact import total_bits
from skillpress.skills.search.greedy import search_greedily
from skillpress.skills.search.refined import search_refined
from tests.support.skills.corpora import repetitive

L = 4


@settings(max_examples=100)
@given(repetitive(4))
def test_it_is_never_worse_than_greedy_or_singletons(corpus):
    counted = count_numbers(corpus, 4)
    refined = total_bits(counted, search_refined(counted, L, 0).phrases, L)
    assert refined <= total_bits(counted, search_greedily(counted, L, 0).phrases, L) + 1e-9
    assert refined <= total_bits(counted, [], L) + 1e-9


@settings(max_examples=60)
@given(repetitive(3))
def test_no_addition_removal_or_swap_improves_what_it_found(corpus):
    counted = count_numbers(corpus, 3)
    found = search_refined(counted, L, 0).phrases
    reached = total_bits(counted, found, L)
    for changed in neighbours(corpus, found):
        assert total_bits(counted, changed, L) >= reached - 1e-6


@given(repetitive(3), st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_is_irrelevant(corpus, random):
    named = [tuple("xyz"[skill] for skill in sequence) for sequence in corpus]
    shuffled = fit(random.sample(named, len(named)), "xyz", L, search="refined")
    assert shuffled == fit(named, "xyz", L, search="refined")


@pytest.mark.parametrize("copies", range(2, 60))
def test_copies_of_one_routine_become_one_phrase_as_soon_as_that_pays(copies):
    """n copies of ABCD, K = L = 4: with the whole phrase 26 bits + n log2 5, without 16 + 8 n."""
    corpus = count_numbers([(0, 1, 2, 3)] * copies, 4)
    expected = min(26 + copies * np.log2(5), 16 + 8 * copies)
    assert total_bits(corpus, search_refined(corpus, L, 0).phrases, L) == pytest.approx(expected)


@given(repetitive(4))
def test_pruning_leaves_grams_of_the_corpus(corpus):
    counted = count_numbers(corpus, 4)
    grams = number_grams(counted, L)
    phrases = phrases_of(counted, grams, prune_everything(grams))
    assert phrases == sorted(set(phrases))
    assert set(phrases) <= set(occurring(corpus))


def occurring(corpus: list[Phrase]) -> list[Phrase]:
    return sorted({s[a : a + n] for s in corpus for n in range(2, L + 1) for a in range(len(s) - n + 1)})


def neighbours(corpus: list[Phrase], found: list[Phrase]) -> list[list[Phrase]]:
    """Every dictionary one addition, removal or swap away."""
    additions = [gram for gram in occurring(corpus) if gram not in found]
    fewer = [[phrase for phrase in found if phrase != taken] for taken in found]
    return fewer + [[*some, added] for some in [found, *fewer] for added in additions]
