"""A success pays for the bits of its cheapest cut, in units of the bits of a skill."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import fsum, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.bits import Bits, cheapest_cut, index_bits
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.shaping import Played, RoundLength

ALPHABET = ("A", "B", "C", "D")
SINGLETONS = tuple((skill,) for skill in ALPHABET)


def dictionary_of(phrases: tuple[tuple[str, ...], ...], counts: tuple[int, ...]) -> SkillDictionary:
    """The singletons of A, B, C, D and these phrases; counts in that order."""
    return SkillDictionary(ALPHABET, 4, (*SINGLETONS, *phrases), counts, 1, "greedy", 0)


def won(*sequences: tuple[str, ...]) -> Played:
    return Played([True] * len(sequences), sequences, [len(sequence) for sequence in sequences])


KNOWN = dictionary_of((("A", "B"),), (1, 0, 3, 0, 7))
"""With one added, the uses are A 2, B 1, C 4, D 1, AB 8: 16 in all, so 3, 4, 2, 4 and 1 bits."""


def test_the_bits_of_a_phrase_are_minus_log2_of_its_share_of_uses_with_one_added_to_each() -> None:
    assert index_bits(KNOWN) == {("A",): 3, ("B",): 4, ("C",): 2, ("D",): 4, ("A", "B"): 1}


def test_a_success_pays_its_bits_in_skills_of_two_bits_times_lambda_over_t() -> None:
    """AB|C|AB has 4 bits, D|A 7. Four skills have 2 bits each; λ = 10, T = 30."""
    played = Played([True, True, False], [(*"ABCAB",), ("D", "A"), ("D",)], [5, 2, 1])
    np.testing.assert_allclose(Bits(10.0, 30)(played, KNOWN), [10 * 2 / 30, 10 * 3.5 / 30, 0], rtol=1e-15)


def test_the_cut_is_the_cheapest_and_not_the_one_of_fewest_phrases() -> None:
    """Uses with one added: A 2, B 1, C 1, D 2, AB 8, ABAB 2. One phrase of 3 bits, or two of 1 bit each."""
    rare = dictionary_of((("A", "B"), (*"ABAB",)), (1, 0, 0, 1, 7, 1))
    assert rare.segment("ABAB") == [(*"ABAB",)]
    assert cheapest_cut("ABAB", index_bits(rare), 4) == [("A", "B"), ("A", "B")]
    np.testing.assert_allclose(Bits(30.0, 30)(won((*"ABAB",)), rare), [1.0], rtol=1e-15)


def test_of_equally_cheap_cuts_the_longest_phrase_is_taken() -> None:
    assert cheapest_cut("AB", {("A",): 1.0, ("B",): 1.0, ("A", "B"): 2.0}, 2) == [("A", "B")]


def test_the_step_that_holds_the_first_skill_of_a_phrase_pays_its_bits() -> None:
    """A _ B | C | AB within a step: 1, 2 and 1 bits; λ / T = 2 and a skill has 2 bits."""
    steps = (("A",), (), ("B",), ("C", "A", "B"))
    assert Bits(60.0, 30).of_steps(steps, KNOWN).tolist() == [1, 0, 0, 3]


def test_a_skill_that_the_corpus_never_used_is_charged_and_may_cost_more_than_lambda() -> None:
    assert Bits(10.0, 1)(won(("D",)), KNOWN).tolist() == [20.0]


def test_where_there_is_one_skill_only_nothing_has_to_be_named() -> None:
    only = SkillDictionary(("A",), 2, (("A",),), (5,), 5, "greedy", 0)
    assert Bits(10.0, 30)(won(("A", "A")), only).tolist() == [0.0]


def test_a_skill_outside_the_alphabet_is_refused() -> None:
    with pytest.raises(ValueError, match="skills without a phrase: 'X'"):
        Bits(10.0, 30)(won(("A", "X")), KNOWN)


phrases = st.sets(st.lists(st.sampled_from("ABC"), min_size=2, max_size=4).map(tuple), max_size=6)
sequences = st.lists(st.sampled_from("ABC"), max_size=8).map(tuple)


@st.composite
def dictionaries(draw: st.DrawFn) -> SkillDictionary:
    found = tuple(sorted(draw(phrases)))
    uses = st.integers(0, 50)
    return dictionary_of(found, tuple(draw(uses) for _ in range(4 + len(found))))


def cuts(sequence: tuple[str, ...], known: frozenset[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Every way to cut a sequence into known phrases."""
    found = []
    for inner in range(len(sequence)):
        for places in combinations(range(1, len(sequence)), inner):
            ends = [0, *places, len(sequence)]
            parts = [sequence[a:b] for a, b in pairwise(ends)]
            if all(part in known for part in parts):
                found.append(parts)
    return found or [[]]


@given(dictionaries(), sequences)
def test_no_other_cut_has_fewer_bits(dictionary: SkillDictionary, sequence: tuple[str, ...]) -> None:
    bits = index_bits(dictionary)
    fewest = min(sum(map(bits.__getitem__, cut)) for cut in cuts(sequence, frozenset(dictionary.phrases)))
    found = cheapest_cut(sequence, bits, 4)
    assert sum(found, ()) == sequence
    assert sum(map(bits.__getitem__, found)) == pytest.approx(fewest, abs=1e-12)
    (penalty,) = Bits(1.0, 10)(won(sequence), dictionary)
    assert penalty == pytest.approx(fewest / 2 / 10, abs=1e-12)


@given(dictionaries())
def test_the_indices_are_a_code(dictionary: SkillDictionary) -> None:
    """Kraft's inequality, with equality."""
    assert fsum(2**-bits for bits in index_bits(dictionary).values()) == pytest.approx(1.0)


@given(st.integers(0, 100), st.lists(sequences, min_size=1))
def test_under_singletons_in_equal_use_it_is_round_length(uses: int, batch: list[tuple[str, ...]]) -> None:
    equal = dictionary_of((), (uses,) * 4)
    by_length = RoundLength(10.0, 30)(won(*batch), None)
    np.testing.assert_allclose(Bits(10.0, 30)(won(*batch), equal), by_length, rtol=1e-12)


@given(dictionaries(), sequences)
def test_it_never_exceeds_the_bits_of_the_cut_of_fewest_phrases(
    dictionary: SkillDictionary, sequence: tuple[str, ...]
) -> None:
    bits = index_bits(dictionary)
    fewest_phrases = sum(bits[phrase] for phrase in dictionary.segment(sequence))
    (penalty,) = Bits(10.0, 10)(won(sequence), dictionary)
    assert penalty <= fewest_phrases / log2(4) + 1e-12
