"""The choice of episodes for a page that cannot show all."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.sample import sample


def table(won: list[bool], rollouts: int = 4, policies: int = 2) -> pl.DataFrame:
    """Episodes in groups of this size; the groups of one policy follow those of another."""
    places = range(len(won))
    return pl.DataFrame(
        {
            "place": places,
            "source": [0] * len(won),
            "policy": [f"policy-{place // rollouts % policies}" for place in places],
            "group": [f"group-{place // rollouts}" for place in places],
            "won": won,
            "reward": [float(each) for each in won],
        }
    )


def taken(groups: list[list[int]]) -> list[int]:
    return [place for group in groups for place in group]


@given(st.lists(st.booleans(), max_size=80), st.integers(1, 60), st.integers(0, 3))
def test_a_sample_has_no_more_than_it_may_and_none_twice(won: list[bool], most: int, seed: int) -> None:
    found = taken(sample(table(won), seed, most).groups)
    assert len(found) == len(set(found)) <= most
    assert set(found) <= set(range(len(won)))
    if len(won) <= most:
        assert sorted(found) == [*range(len(won))]


@given(st.lists(st.booleans(), max_size=80), st.integers(0, 3))
def test_the_same_seed_draws_the_same(won: list[bool], seed: int) -> None:
    assert sample(table(won), seed, 20) == sample(table(won), seed, 20)


def test_another_seed_draws_other_wins() -> None:
    won = [place % 3 > 0 for place in range(300)]
    assert sample(table(won), 0, 30).groups != sample(table(won), 1, 30).groups


def test_the_first_losses_of_every_policy_are_there() -> None:
    won = [place % 3 > 0 for place in range(300)]
    found = set(taken(sample(table(won), 0, 30).groups))
    losses = table(won).filter(~pl.col("won"))
    for _, of_policy in losses.group_by("policy"):
        assert set(of_policy["place"][:4]) <= found


def test_groups_are_whole_and_those_that_vary_most_come_first() -> None:
    won = [False] * 100 + [True, False, False, False] + [True, True, False, False] + [True] * 92
    found = sample(table(won), 0, 50).groups
    assert any(set(group) == {104, 105, 106, 107} for group in found)
    first = next(number for number, group in enumerate(found) if 104 in group)
    assert all(len(group) == 1 for number, group in enumerate(found) if number < first)


def test_where_all_fit_all_are_shown() -> None:
    found = sample(table([True] * 7), 0, 7)
    assert (taken(found.groups), found.note) == ([*range(7)], "All 7 episodes.")


def test_the_note_says_how_it_was_drawn() -> None:
    found = sample(table([place % 2 == 0 for place in range(1200)]), 5)
    assert found.note == (
        "A sample of 300 of 1,200 episodes: the first losses of every policy, wins of every policy drawn "
        "with seed 5, and whole groups, those whose rewards vary most."
    )


@pytest.mark.parametrize("most", [10, 40])
def test_an_opened_catalogue_is_sampled(most: int, catalogue: RolloutCatalogue) -> None:
    found = sample(catalogue.table(), 0, most)
    assert 0 < len(taken(found.groups)) <= most
