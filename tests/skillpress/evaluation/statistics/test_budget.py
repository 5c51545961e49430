"""Success against step budget."""

from __future__ import annotations

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.evaluation.statistics.budget import success_against_budget
from skillpress.evaluation.statistics.episodes import episode_table, evaluation_steps


def curve(episodes, max_steps):
    return success_against_budget(episode_table(evaluation_steps(rollout_frame(episodes))), max_steps)


def test_it_counts_the_episodes_won_in_at_most_t_steps(episode):
    episodes = [
        episode("a", 0, ["x"] * 2, won=True),
        episode("b", 0, ["x"] * 4, won=True),
        episode("c", 0, ["x"] * 3, won=False, outcome="stuck"),
        episode("d", 0, ["x"] * 5, won=False),
    ]
    found = curve(episodes, 5)
    assert found.success == (0, 0.25, 0.25, 0.5, 0.5)
    assert found.points == {3: 0.25, 5: 0.5}
    assert found.area == pytest.approx((0 + 0.25 + 0.25 + 0.5 + 0.5) / 5)
    assert found.episodes == 4


def test_the_area_is_1_for_instant_success_and_0_for_none(episode):
    assert curve([episode("a", 0, ["x"], won=True)], 30).area == pytest.approx(1)
    assert curve([episode("a", 0, ["x"], won=False)], 30).area == 0


def test_an_episode_longer_than_the_budget_is_refused(episode):
    with pytest.raises(ValueError, match="an episode has 4 steps, more than T = 3"):
        curve([episode("a", 0, ["x"] * 4, won=True)], 3)
