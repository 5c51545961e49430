"""Behaviour figures that need no knowledge of the environment."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from skillpress.core.intervals import wilson
from skillpress.core.parsed_action import FORMAT_REASONS
from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step
from skillpress.evaluation.statistics.behavior import count, general_behavior, success_lengths
from skillpress.evaluation.statistics.episodes import (
    carried_out,
    episode_table,
    evaluation_steps,
    was_carried_out,
)
from skillpress.rollouts.agents.parsing import lenient, plain, tagged


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


def test_refused_and_carried_out_in_a_bad_format_partition_the_invalid_steps(episode):
    steps = [
        ("a", None),
        ("", "two_actions"),
        ("look", "missing_thought"),
        ("fly", "missing_thought+not_admissible"),
        ("fly", "not_admissible"),
    ]
    found = figures([with_steps(episode("a", 0, ["x"], won=True), *steps)])
    assert found["invalid_rate"].value == 4 / 5
    assert found["refused_rate"].value == 3 / 5
    assert found["malformed_rate"].value == 3 / 5
    assert found["misformatted_rate_success"].value == 1 / 5


def test_the_papers_invalid_actions_are_those_that_were_refused(episode):
    """ALFWorld answers them with "Nothing happens."; an action that its lenient parser passed on and the game
    carried out is none of them."""
    steps = [("look", "missing_thought"), ("look", None), ("fly", "missing_thought+not_admissible")]
    found = figures([with_steps(episode("a", 0, ["x"], won=True), *steps)])["invalid_rate_success"]
    assert (found.value, found.table) == (1 / 3, "Tables 2, 9")


@pytest.mark.parametrize("text", ["", "<think>a", "<think>a</think>", "<action>a</action>",
    "<think></think><action></action>", "<think></think><action>a</action><action>b</action>",
    "<think></think><action>\x00</action>"])  # fmt: skip
def test_what_a_parser_cannot_read_counts_as_malformed(text):
    for parse in (plain, tagged, lenient):
        parsed = parse(text)
        assert parsed.invalid is None or parsed.invalid in FORMAT_REASONS
    assert tagged(text).invalid in FORMAT_REASONS


def with_steps(trajectory, *steps):
    """The episode with these (action, reason) for its steps."""
    return replace(trajectory, steps=tuple(Step((), (), (), "", a, "", reason, ()) for a, reason in steps))


def test_an_action_carried_out_in_spite_of_its_format_is_malformed_and_one_refused_as_well_is_malformed_too(
    episode,
):
    taken = [("look", "missing_thought"), ("fly", "missing_thought+not_admissible"), ("look up", None)]
    played = with_steps(episode("a", 0, ["x"], won=False), *taken)
    assert figures([played])["malformed_rate"].value == 2 / 3
    assert figures([played])["refused_rate"].value == 1 / 3
    steps = evaluation_steps(rollout_frame([played]))
    (rows,) = steps.stretches()
    assert rows.filter(carried_out())["action"].to_list() == ["look", "look up"]
    assert [was_carried_out(*step) for step in taken] == [True, False, True]


def test_a_strict_parser_lets_nothing_through(episode):
    reasons = ["missing_thought", "missing_action", "two_actions", "empty", "too_long", "not_admissible"]
    played = with_steps(episode("a", 0, ["x"], won=False), *(("", reason) for reason in reasons))
    (rows,) = evaluation_steps(rollout_frame([played])).stretches()
    assert rows.filter(carried_out()).height == 0


def test_a_step_without_an_action_repeats_none(episode):
    taken = [("", "missing_action"), ("", "missing_action"), ("look", None), ("look", None), ("go", None)]
    table = episode_table(evaluation_steps(rollout_frame([with_steps(episode("a", 0, ["x"], True), *taken)])))
    assert table["repeated_steps"].to_list() == [1]


def test_a_count_has_the_interval_of_its_share(episode):
    episodes = [episode(str(i), 0, ["x"], won=i < 30) for i in range(100)]
    table = episode_table(evaluation_steps(rollout_frame(episodes)))
    found = count("wins", "Wins", table, pl.col("won"))
    expected = wilson(0.3, 99)
    assert (found.value, found.episodes) == (30, 100)
    assert (found.low, found.high) == (pytest.approx(100 * expected.low), pytest.approx(100 * expected.high))
