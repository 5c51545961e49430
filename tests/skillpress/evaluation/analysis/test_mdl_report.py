"""The report's numbers add up to the dictionary's bits."""

from __future__ import annotations

from math import log2

import pytest

from skillpress.evaluation.analysis.mdl_report import coverage, overlap, parts, phrase_table, savings
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.fit import fit

ALPHABET = ("A", "B", "C", "D")
CORPUS = [("A", "B", "C", "D")] * 50
WHOLE = fit(CORPUS, ALPHABET, 4, "exact")


def with_phrases(*learned: str, counts: tuple[int, ...] = ()) -> SkillDictionary:
    phrases = (*((skill,) for skill in ALPHABET), *(tuple(phrase) for phrase in learned))
    return SkillDictionary(ALPHABET, 4, phrases, (0,) * 4 + (counts or (1,) * len(learned)), 1, "greedy", 0)


def test_bits_before_and_after():
    """16 bits for the singletons and 50 * 4 * 2 for the data; with ABCD 26 and 50 log2 5."""
    found = savings(WHOLE, CORPUS)
    assert found.singletons == pytest.approx((16 + 400) / 50)
    assert found.dictionary == pytest.approx(WHOLE.description_length)
    assert found.saved_share == pytest.approx(1 - (26 + 50 * log2(5)) / 416)


def test_the_parts_of_the_bits_are_those_of_the_singletons_and_of_the_dictionary():
    """The same figures, found without the corpus."""
    before, after = parts(WHOLE).rows()
    assert before == (4, pytest.approx(16 / 50), pytest.approx(400 / 50))
    assert after == (5, pytest.approx(26 / 50), pytest.approx(log2(5)))


def test_a_phrase_saves_what_the_corpus_would_need_more_without_it():
    table = phrase_table(WHOLE, CORPUS)
    assert table.row(0) == ("A → B → C → D", 4, 50, pytest.approx(416 - 26 - 50 * log2(5)))
    assert table["uses"].to_list() == [50, 0, 0, 0, 0]
    assert table["bits_saved"].to_list()[1:] == [None] * 4


def test_an_unused_phrase_saves_less_than_nothing():
    table = phrase_table(with_phrases("ABCD", "AB"), CORPUS)
    assert table.row(1)[3] == pytest.approx(-(2 * 2 + 2) - 50 * (log2(6) - log2(5)))


def test_coverage_shares_out_the_skills():
    """50 times ABCD and one A: 200 of 201 skills in phrases of four."""
    dictionary = fit([*CORPUS, ("A",)], ALPHABET, 4, "exact")
    assert coverage(dictionary).rows() == [
        (1, 1, pytest.approx(1 / 201)),
        (2, 0, 0.0),
        (3, 0, 0.0),
        (4, 50, pytest.approx(200 / 201)),
    ]


def test_overlap_counts_phrases_and_their_uses():
    """AB is shared, its use share is 3/4 here and 1/4 there: (1/4) / (3/4 + 1/4 + 3/4)."""
    mine, theirs = (with_phrases("AB", p, counts=n) for p, n in (("CD", (3, 1)), ("BC", (1, 3))))
    found = overlap(mine.learned_counts, theirs.learned_counts)
    assert found.phrases == pytest.approx(1 / 3)
    assert found.uses == pytest.approx((1 / 4) / (3 / 4 + 1 / 4 + 3 / 4))
    same = overlap(WHOLE.learned_counts, WHOLE.learned_counts)
    assert same.phrases == same.uses == overlap({}, {}).phrases == 1
