"""𝓛_BDL is Eq. 3, checked by hand in a small case."""

from __future__ import annotations

import pytest

from skillpress.skills.description_length import data_bits, description_length, dictionary_bits


def test_equation_2_charges_skills_and_lengths():
    """K = 4 and L = 4: A, B, C, D and ABCD hold 8 skills of 2 bits and 5 lengths of 2 bits."""
    assert dictionary_bits(skills=8, phrases=5, alphabet_size=4, max_phrase_length=4) == 26.0


def test_equation_3_shares_both_parts_among_the_sequences():
    """8 phrases (14 skills): 2*14 + 2*8 = 44 bits; 40 segments of log2 8 = 3 bits; 10 sequences."""
    assert data_bits(segments=40, phrases=8) == 120.0
    assert description_length(14, 8, 40, 10, 4, 4) == pytest.approx((44 + 120) / 10)


def test_fifty_copies_of_abcd_cost_2_842_bits_with_the_whole_phrase():
    """50 copies of ABCD need one segment each: 26 bits / 50 + log2 5."""
    assert description_length(8, 5, 50, 50, 4, 4) == pytest.approx(2.842, abs=5e-4)


def test_an_alphabet_of_one_skill_and_phrases_of_one_skill_cost_nothing_to_name():
    assert description_length(1, 1, 7, 3, 1, 1) == 0.0
