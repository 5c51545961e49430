"""The metrics of episodes in a row of the training curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Step, Summary, Task, Trajectory
from skillpress.rollouts.agents import OutcomeReward
from skillpress.rollouts.agents.reward import WeightedMeasure
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import batch_of
from skillpress.training.algorithms.group_statistics import centred, standardised
from skillpress.training.loop.describing.batch_metrics import batch_metrics

REWARD = OutcomeReward(
    10.0,
    0.01,
    measures={
        "executed": WeightedMeasure(weight=0.5, credit="step"),
        "format": WeightedMeasure(weight=0.1, credit="step"),
    },
)
STATE = AgentState(Task("t", "none", 0, {}), "", Info())


def step(executed: bool, tokens: int, parsed: ParsedAction, reward: OutcomeReward = REWARD) -> Step:
    parts = reward(STATE, parsed, "", Info(measures={"executed": float(executed)}))
    return Step((1,), (2,) * tokens, (-1.0,) * tokens, "", parsed.action, "", parsed.invalid, parts)


def trajectory(steps: Sequence[Step], summaries: Sequence[Summary] = (), won: bool = False) -> Trajectory:
    return Trajectory(
        "t", "g", 0, tuple(steps), won=won, terminated=won, truncated=not won, outcome="any",
        policy_version=0, seed=0, summaries=tuple(summaries),
    )  # fmt: skip


def metrics(*played: Trajectory) -> dict[str, float]:
    batch = batch_of(played, [0] * len(played), 10.0, 4)
    return batch_metrics(played, batch, np.zeros(len(batch.tokens)), Ranks())


RIGHT, WRONG = ParsedAction("", "x = 1"), ParsedAction("", "", "missing_action")


def test_the_panels_of_l0s_figure_3_are_means_over_the_steps_of_all_that_was_played() -> None:
    found = metrics(
        trajectory([step(True, 4, RIGHT), step(False, 8, RIGHT), step(False, 3, WRONG)]),
        trajectory([step(True, 5, RIGHT)]),
    )
    assert found["reward/executed"] == pytest.approx(0.5 * 2 / 4)
    assert found["reward/format"] == pytest.approx(0.1 * 3 / 4)
    assert found["response_tokens"] == 5 and found["episode_length"] == 2 and found["invalid"] == 0.25
    assert found["environment_steps"] == 4, "those of all that was played"


def test_success_and_invalid_actions_alone_need_no_further_columns() -> None:
    plain = OutcomeReward(10.0, 0.01)
    found = metrics(trajectory([step(True, 4, RIGHT, plain)]))
    assert not [name for name in found if name.startswith("reward/")] and "response_tokens" not in found


def test_summaries_are_counted_per_episode_and_are_no_steps_but_their_responses_have_a_length() -> None:
    summary = Summary(1, step(False, 20, RIGHT))
    found = metrics(trajectory([step(True, 4, RIGHT), step(True, 6, RIGHT)], [summary]))
    assert found["summaries"] == 1 and found["episode_length"] == 2
    assert found["response_tokens"] == 10 and found["reward/executed"] == 0.5
    assert "summaries" not in metrics(trajectory([step(True, 4, RIGHT)]))


@pytest.mark.parametrize("per_token", [False, True])
def test_advantage_of_all_won_is_the_share_of_groups_without_a_failure(per_token: bool) -> None:
    """By hand: group 0 has a failure, groups 1 and 2 have none; the sum of |A| is 0.5 + 1.5 + (2 + 2 + 0 +
    1), and the last two groups have 5 of 7. A step whose prompt did not fit (no tokens) does not count."""
    one, nothing = step(True, 1, RIGHT), step(True, 0, RIGHT)
    played = [
        trajectory([one], won=True),
        trajectory([one]),
        trajectory([one, nothing, one], won=True),
        trajectory([one], won=True),
        trajectory([one], won=True),
    ]
    batch = batch_of(played, [0, 0, 1, 1, 2], 10.0, 4)
    advantages = np.array([0.5, -1.5, -2.0, 9.0, -2.0, 0.0, 1.0])
    if per_token:
        advantages = np.stack([advantages, np.full(7, 99.0)], axis=1)  # the second column is padding
    found = batch_metrics(played, batch, advantages, Ranks())
    assert found["advantage_of_all_won"] == pytest.approx(5 / 7)
    assert "advantage_of_all_won" not in batch_metrics(played, batch, 0 * advantages, Ranks())


def test_the_groups_deviation_makes_the_shaping_as_loud_as_success_however_small_it_is() -> None:
    """A group of 4 with one failure and a group of 4 successes of lengths 2, 3, 3, 4: divided by their
    deviations, both have |A| of the same order, whatever lambda is. Without the division lambda matters."""

    core = RewardPart("success", 10.0, "trajectory")
    won, lost = replace(step(True, 1, RIGHT), reward_parts=(core,)), step(True, 1, RIGHT)

    def share(scale: str, penalty: float) -> float:
        played = [trajectory([lost if n == 3 else won], won=n != 3) for n in range(8)]
        batch = batch_of(played, [0] * 4 + [1] * 4, 10.0, 4)
        batch = replace(batch, penalty=penalty * np.array([0.0] * 4 + [2.0, 3.0, 3.0, 4.0]))
        divide = standardised if scale == "std" else centred
        found = batch_metrics(played, batch, divide(batch, "per_trajectory"), Ranks())
        return found["advantage_of_all_won"]

    assert share("std", 1e-3) == pytest.approx(share("std", 1.0), abs=0.01) and share("std", 1.0) > 0.4
    assert share("none", 1e-3) < 0.001 < 0.1 < share("none", 1.0)


def of_groups(
    *groups: tuple[Sequence[bool], Sequence[float]], scale: str = "std"
) -> tuple[dict[str, float], np.ndarray]:
    """The metrics and advantages of groups, each of (won, penalty) per episode of one step."""
    core = RewardPart("success", 10.0, "trajectory")
    lost = step(True, 1, RIGHT, OutcomeReward(10.0, 0.01))
    won = replace(lost, reward_parts=(core,))
    wins = [win for group, _ in groups for win in group]
    numbers = [number for number, (group, _) in enumerate(groups) for _ in group]
    played = [trajectory([won if win else lost], won=win) for win in wins]
    penalty = np.array([paid for _, paying in groups for paid in paying])
    batch = replace(batch_of(played, numbers, 10.0, 4), penalty=penalty)
    advantages = (standardised if scale == "std" else centred)(batch, "per_trajectory")
    return batch_metrics(played, batch, advantages, Ranks()), advantages


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0, 31.6])
def test_one_segment_more_among_eight_wins_has_the_advantage_of_a_failure_among_eight(
    weight: float,
) -> None:
    """Sample deviation: seven of 0 and one of -c have mean -c / 8, deviation c / sqrt(8), and advantages of
    -(7/8) sqrt(8) = -2.475 and (1/8) sqrt(8) = 0.354, whatever c is. So has one failure among wins."""
    one_more = [weight / 30] + [0.0] * 7
    _, of_segment = of_groups(([True] * 8, one_more))
    _, of_failure = of_groups(([False] + [True] * 7, [0.0] * 8))
    _, of_invalid_action = of_groups(([True] * 8, [0.01] + [0.0] * 7))
    for found in (of_segment, of_failure, of_invalid_action):
        np.testing.assert_allclose(found, [-2.475] + [0.354] * 7, atol=0.003)


def test_shaping_alone_is_the_share_of_groups_of_equal_success_that_are_told_apart() -> None:
    """Groups: a failure among wins; wins of different cost; wins of one cost; failures of which one was
    invalid. Costs alone make the difference in two of four. All three that teach have |A| of 7/8 + 7/8 times
    sqrt(8), so the two have two thirds of the sum."""
    apart, equal = [0.5] + [0.0] * 7, [0.5] * 8
    found, _ = of_groups(
        ([False] + [True] * 7, [0.0] * 8), ([True] * 8, apart), ([True] * 8, equal), ([False] * 8, apart)
    )
    assert found["shaping_alone"] == 2 / 4
    assert found["advantage_of_shaping_alone"] == pytest.approx(2 / 3, abs=1e-5)
    assert found["advantage_of_all_won"] == pytest.approx(1 / 3, abs=1e-5)
    centred, _ = of_groups(([False] + [True] * 7, [0.0] * 8), ([True] * 8, apart), scale="none")
    assert centred["advantage_of_shaping_alone"] == pytest.approx(0.5 / 10.5)
    nothing, _ = of_groups(([True] * 8, equal))
    assert nothing["shaping_alone"] == 0 and "advantage_of_shaping_alone" not in nothing
