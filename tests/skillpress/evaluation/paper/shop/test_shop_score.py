"""The mean score of purchases, counted by hand."""

from __future__ import annotations

import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.evaluation.paper.shop import FIGURES
from skillpress.evaluation.statistics.episodes import evaluation_steps
from tests.support.episodes import made_step, made_trajectory


def test_the_score_is_the_mean_over_all_episodes_and_0_without_a_purchase() -> None:
    endings = ("Thanks [SEP] Your score [SEP] 1.0000", "Thanks [SEP] Your score [SEP] 0.6667", "Instruction:")
    episodes = [
        made_trajectory(
            steps=[made_step(observation="a page"), made_step(observation=ending)],
            task_id=f"t{number}",
            group_id=f"g{number}",
        )
        for number, ending in enumerate(endings)
    ]
    (score,) = FIGURES.behavior(evaluation_steps(rollout_frame(episodes))).figures
    assert (score.key, score.unit, score.episodes) == ("score", "share", 3)
    assert score.value == pytest.approx(1.6667 / 3) and score.low == 0.0
