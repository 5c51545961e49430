"""Behaviour figures that need no knowledge of the world."""

from __future__ import annotations

import pytest

from skillpress.evaluation.behavior import general_behavior, success_lengths
from skillpress.evaluation.episodes import episode_table, evaluation_steps
from skillpress.trajectory import rollout_frame


def figures(episodes):
    table = episode_table(evaluation_steps(rollout_frame(episodes)))
    return {f.key: f for f in general_behavior(table)}


@pytest.fixture
def played(episode):
    return [
        episode("a", 0, ["north", "!fly", "north"], won=True),  # 1 invalid, 1 repeated
        episode("b", 0, ["east"], won=True),
        episode("c", 0, ["!fly", "!fly", "!fly", "!fly"], won=False),
        episode("d", 0, ["west"], won=False, outcome="stuck"),
        episode("e", 0, ["west"], won=False, outcome="stuck"),
    ]


def test_rates_of_successes_pool_the_steps_of_won_episodes_alone(played):
    found = figures(played)
    assert found["success_length"].value == 2
    assert found["invalid_rate_success"].value == pytest.approx(1 / 4)
    assert found["repetition_rate_success"].value == pytest.approx(1 / 4)
    assert {found[k].episodes for k in ("success_length", "repetition_rate_success")} == {2}


def test_the_overall_invalid_rate_counts_failures_too(played):
    assert figures(played)["invalid_rate"].value == pytest.approx(5 / 10)
    assert figures(played)["invalid_rate"].episodes == 5


def test_failure_shares_partition_the_failures(played):
    found = figures(played)
    assert found["failures_stuck"].value == pytest.approx(2 / 3)
    assert found["failures_timeout"].value == pytest.approx(1 / 3)
    assert found["failures_stuck"].episodes == 3


def test_an_action_repeated_in_another_episode_is_no_repetition(episode):
    episodes = [episode("a", 0, ["north"], won=True), episode("a", 1, ["north"], won=True)]
    assert figures(episodes)["repetition_rate_success"].value == 0


def test_without_successes_there_is_no_figure_rather_than_zero(episode):
    found = figures([episode("a", 0, ["x"], won=False)])
    assert found["success_length"].value is None
    assert found["success_length"].episodes == 0


def test_success_lengths_count_wins_by_steps(played):
    table = episode_table(evaluation_steps(rollout_frame(played)))
    assert success_lengths(table) == {1: 1, 3: 1}
