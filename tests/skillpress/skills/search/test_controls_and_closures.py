"""Controls are as large as the greedy dictionary; closures remove exploitable cuts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import ParamsError
from skillpress.skills.closure import close, deletions, prefixes
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.exploitable import exploitable, exploitable_rate
from skillpress.skills.fit import fit
from tests.support.skills.corpora import dictionaries, repetitive, sequences

K, L = 3, 4
ALPHABET = ("x", "y", "z")


def named(corpus):
    return [tuple(ALPHABET[skill] for skill in sequence) for sequence in corpus]


def dictionary_of(phrases) -> SkillDictionary:
    learned = tuple(tuple(ALPHABET[skill] for skill in phrase) for phrase in phrases if len(phrase) > 1)
    members = (*((skill,) for skill in ALPHABET), *learned)
    return SkillDictionary(ALPHABET, L, members, (0,) * len(members), 1, "greedy", 0)


@given(repetitive(K), st.integers(0, 5))
def test_a_random_dictionary_costs_as_many_bits_as_the_greedy_one(corpus, seed):
    greedy = fit(named(corpus), ALPHABET, L)
    drawn = fit(named(corpus), ALPHABET, L, search="random", seed=seed)
    assert drawn.dictionary_bits == pytest.approx(greedy.dictionary_bits)
    assert drawn == fit(named(corpus), ALPHABET, L, search="random", seed=seed)


@given(repetitive(K))
def test_the_frequency_dictionary_has_the_greedy_size_unless_pairs_run_out(corpus):
    greedy = fit(named(corpus), ALPHABET, L)
    frequent = fit(named(corpus), ALPHABET, L, search="frequency")
    assert len(frequent.learned) <= len(greedy.learned)
    if greedy.learned:
        assert frequent.learned[0] == max_pair(named(corpus))


def test_frequency_does_not_ask_whether_a_merge_pays():
    """Seven zzz count zz 14 times, before 13 xy, but save only 7 segments.

    With K = 3, L = 2 and 52 skills, xy pays: 4.17 bits + 52 log2(4/3) < 13 log2 4. After it zz does not:
    4.17 bits + 39 log2(5/4) > 7 log2 5.
    """
    corpus = [("x", "y")] * 13 + [("z",) * 3] * 7 + [("x",)] * 5
    assert fit(corpus, ALPHABET, 2).learned == (("x", "y"),)
    assert fit(corpus, ALPHABET, 2, search="frequency").learned == (("z", "z"),)


@given(sequences(K, max_size=10), dictionaries(K, L))
def test_exploitable_means_that_some_insertion_lowers_the_cost(sequence, phrases):
    dictionary = dictionary_of(phrases)
    skills = named([sequence])[0]
    cheaper = any(
        dictionary.cost((*skills[:place], skill, *skills[place:])) < dictionary.cost(skills)
        for place in range(len(skills) + 1)
        for skill in ALPHABET
    )
    assert exploitable([skills], dictionary) == [cheaper]


@settings(max_examples=50)
@given(sequences(K, max_size=10), dictionaries(K, L))
def test_deletion_closed_dictionaries_cannot_be_exploited(sequence, phrases):
    closed = close([phrase for phrase in sorted(phrases) if len(phrase) > 1], deletions)
    assert exploitable(named([sequence]), dictionary_of(closed)) == [False]


@given(sequences(K, max_size=10), st.integers(0, K - 1), dictionaries(K, L))
def test_prefix_closed_dictionaries_never_reward_going_on(sequence, skill, phrases):
    closed = close([phrase for phrase in sorted(phrases) if len(phrase) > 1], prefixes)
    dictionary = dictionary_of(closed)
    shorter, longer = named([sequence, (*sequence, skill)])
    assert dictionary.cost(shorter) <= dictionary.cost(longer)


def test_prefixes_do_not_stop_insertions_in_the_middle():
    dictionary = dictionary_of(close([(0, 1, 2)], prefixes))
    assert exploitable([("x", "z"), ("x", "y")], dictionary) == [True, False]
    assert exploitable_rate([("x", "z"), ("x", "y")], dictionary) == 0.5
    assert exploitable_rate([], dictionary) == 0.0


def test_a_closure_is_applied_and_recorded():
    corpus = [("x", "y", "z")] * 40
    closed = fit(corpus, ALPHABET, 3, search="exact", closure="prefixes")
    assert closed.learned == (("x", "y"), ("x", "y", "z"))
    assert closed.closure == "prefixes"
    with pytest.raises(ParamsError, match="allowed: none, prefixes, deletions"):
        fit(corpus, ALPHABET, 3, closure="suffixes")


def max_pair(corpus):
    """The most frequent adjacent pair, the first in the alphabet's order among equals."""
    counts: dict[tuple[str, str], int] = {}
    for sequence in corpus:
        for place in range(len(sequence) - 1):
            pair = sequence[place : place + 2]
            counts[pair] = counts.get(pair, 0) + 1
    return min(counts, key=lambda pair: (-counts[pair], pair))
