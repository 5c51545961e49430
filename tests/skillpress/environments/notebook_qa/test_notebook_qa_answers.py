"""Exact match and F1: the figures in every row were computed by hand from the published rules."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.notebook_qa.answers import (
    POLAR,
    exact_match,
    f1,
    has_answer,
    hotpotqa_f1,
    musique_f1,
    normalized,
)

TRICKY = [
    # predicted, gold, exact match, HotpotQA's F1, MuSiQue's F1
    ("Chief of Protocol", "chief of protocol", True, 1.0, 1.0),
    ("The Beatles", "Beatles", True, 1.0, 1.0),
    ("the the who", "Who", True, 1.0, 1.0),
    ("Theatre", "atre", False, 0.0, 0.0),  # articles are whole words
    ("U.S.", "US", True, 1.0, 1.0),
    ("U.S.", "United States", False, 0.0, 0.0),
    ("rock-and-roll", "rock and roll", False, 0.0, 0.0),  # the hyphen is removed, and no space replaces it
    ("1,000", "1000", True, 1.0, 1.0),
    ("A.", "the", True, 0.0, 1.0),  # nothing is left of either
    ("", "", True, 0.0, 1.0),
    ("", "Paris", False, 0.0, 0.0),
    ("an", "Paris", False, 0.0, 0.0),
    ("yes", "Yes.", True, 1.0, 1.0),
    ("yes", "no", False, 0.0, 0.0),
    ("no", "no man's land", False, 0.0, 0.5),
    ("Yes, Paris", "yes", False, 0.0, 2 / 3),
    ("no answer", "noanswer", False, 0.0, 0.0),
    ("yes yes", "yes", False, 0.0, 2 / 3),
    ("yes sir", "no sir", False, 0.5, 0.5),  # neither side is only yes or no
    ("New York City", "New York", False, 0.8, 0.8),
    ("York New", "New York", False, 1.0, 1.0),  # F1 ignores order
    ("New New York", "New York", False, 0.8, 0.8),
    ("New New York", "New New", False, 0.8, 0.8),
    ("Malmö", "Malmo", False, 0.0, 0.0),  # accents stay
    ("MALMÖ", "malmö", True, 1.0, 1.0),
    ("Malmo\u0308", "Malmö", False, 0.0, 0.0),  # composed and decomposed letters differ
    ("1914–1918", "1914-1918", False, 0.0, 0.0),  # the dash is not ASCII and stays
    ("“Kim”", "Kim", False, 0.0, 0.0),
    ("two\u00a0words", "two words", True, 1.0, 1.0),  # every Unicode space counts as one
    ("  two \t words\n", "two words", True, 1.0, 1.0),
    ("東京", "東京", True, 1.0, 1.0),
    ("vitamin A", "vitamin", True, 1.0, 1.0),  # the rules treat the letter as an article
    ("à la carte", "la carte", False, 0.8, 0.8),  # "à" is not an article
]


@pytest.mark.parametrize(("predicted", "gold", "same", "hotpotqa", "musique"), TRICKY)
def test_the_table_of_tricky_cases(
    predicted: str, gold: str, same: bool, hotpotqa: float, musique: float
) -> None:
    assert exact_match(predicted, [gold]) is same
    assert hotpotqa_f1(predicted, gold) == pytest.approx(hotpotqa)
    assert musique_f1(predicted, gold) == pytest.approx(musique)


def test_the_best_alias_counts() -> None:
    aliases = ["New York City", "NYC", "the Big Apple"]
    assert exact_match("big apple", aliases)
    assert f1("Apple", aliases, musique_f1) == pytest.approx(2 / 3)
    assert f1("yes", ["no", "yes"], hotpotqa_f1) == 1.0


def test_a_question_without_answers_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="without answers"):
        exact_match("Paris", [])
    with pytest.raises(ValueError, match="without answers"):
        f1("Paris", [], musique_f1)


def test_an_answer_was_submitted_when_it_is_not_blank() -> None:
    assert has_answer("no") and has_answer("?")
    assert not has_answer(None) and not has_answer("") and not has_answer(" \n")


words = st.lists(st.sampled_from(["a", "the", "yes", "no", "Paris", "paris.", "ö", "-", "U.S."]), max_size=5)
answers = words.map(" ".join) | st.text(max_size=12)


@given(answers)
def test_normalisation_of_ascii_ends_where_it_began(answer: str) -> None:
    once = normalized(answer)
    assert once == once.strip() and "  " not in once
    if answer.isascii():  # in other scripts, lowercasing twice may differ from lowercasing once
        assert normalized(once) == once


@given(answers, answers)
def test_f1_is_symmetric_and_a_share(one: str, other: str) -> None:
    for rule in (hotpotqa_f1, musique_f1):
        assert rule(one, other) == rule(other, one)
        assert 0.0 <= rule(one, other) <= 1.0


@given(answers, answers)
def test_the_rules_differ_only_where_they_say(one: str, other: str) -> None:
    bare = {normalized(one), normalized(other)}
    if not POLAR & bare and "" not in bare:
        assert hotpotqa_f1(one, other) == musique_f1(one, other)
    assert hotpotqa_f1(one, other) <= musique_f1(one, other)


@given(answers, answers)
def test_an_exact_match_has_f1_of_one_unless_nothing_is_left(one: str, other: str) -> None:
    if exact_match(one, [other]):
        assert musique_f1(one, other) == 1.0
        assert hotpotqa_f1(one, other) == (1.0 if normalized(one) else 0.0)


@given(answers, st.lists(answers, min_size=1, max_size=3))
def test_the_order_of_aliases_and_another_alias_never_lower_a_score(
    predicted: str, aliases: list[str]
) -> None:
    for rule in (hotpotqa_f1, musique_f1):
        best = f1(predicted, aliases, rule)
        assert all(f1(predicted, order, rule) == best for order in permutations(aliases))
        assert f1(predicted, [*aliases, "Paris"], rule) >= best
