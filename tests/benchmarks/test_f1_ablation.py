"""The variant of the ablation that reproduces the paper's 7.24 and 7.25."""

from __future__ import annotations

from math import log

import pytest

from benchmarks.f1_ablation import compare_in_nats, expected_for_singletons, tabulate

K, L = 5, 4
A, B, C, D, E = range(K)


def test_without_a_merge_the_papers_corpus_costs_4_5_ln_5_on_average():
    """Ten sequences of 2 to 6 skills, 4 on average: 5 / 10 of the dictionary and 4 skills, ln 5 each."""
    params = {"alphabet": 5, "sequences": 10, "min_length": 2, "max_length": 6}
    assert expected_for_singletons(params) == pytest.approx(4.5 * log(5))
    assert round(4.5 * log(5), 4) == 7.2425


def test_a_group_of_average_length_in_which_nothing_pays_costs_just_that():
    """40 skills in ten sequences, where no pair of skills occurs more than twice."""
    group = [
        (A, A), (B, B), (C, C, D), (D, E, A), (A, B, D, C), (E, C, B, A),
        (B, C, E, D, A), (E, B, D, B, E), (C, A, D, D, E, E), (A, C, B, C, A, E),
    ]  # fmt: skip
    assert sorted(map(len, group)) == [2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    outcome = compare_in_nats(group, K, L)
    for search in ("singletons", "greedy", "all_singletons_optimum"):
        cost, phrases = outcome[search]
        assert cost == pytest.approx(4.5 * log(5))
        assert not phrases


def test_six_uses_of_a_pair_among_forty_skills_are_merged():
    """(5 + 2) ln 5 for the dictionary, 34 segments of ln 6 each, shared by 34 sequences."""
    group = [(A, B)] * 6 + [(skill,) for skill in range(K)] * 5 + [(C,)] * 3
    outcome = compare_in_nats(group, K, L)
    merged = (7 * log(5) + 34 * log(6)) / 34
    assert outcome["greedy"] == (pytest.approx(merged), frozenset({(A, B)}))
    assert outcome["all_singletons_optimum"] == (pytest.approx(merged), frozenset({(A, B)}))
    assert outcome["singletons"][0] == pytest.approx((5 + 40) * log(5) / 34)


def test_a_skill_whose_every_use_is_in_a_phrase_need_not_be_stored_by_the_original_search():
    """Nine times AB and nothing else, two skills: AB alone costs 2 ln 2, and its index ln 1 = 0."""
    cost, phrases = compare_in_nats([(A, B)] * 9, 2, L)["original_optimum"]
    assert cost == pytest.approx(2 * log(2) / 9)
    assert phrases == {(A, B)}


def test_the_table_counts_groups_with_greedys_phrases():
    same = {"greedy": (2.0, frozenset({(A, B)})), "other": (2.0, frozenset({(A, B)}))}
    better = {"greedy": (2.0, frozenset({(A, B)})), "other": (1.0, frozenset())}
    row = tabulate([same, better, better, same], "nats")["other"]
    assert row["mean_nats"] == 1.5
    assert row["groups_with_greedys_phrases_percent"] == 50
    assert row["greedy_above_percent"] == pytest.approx(33.333)
