"""Weights under a group's deviation: the calculation against groups that are drawn and divided."""

from __future__ import annotations

import numpy as np
import pytest

from studies.critical.deviation import DELTA, ROLLOUTS, SUCCESS, WEIGHTS, pull


@pytest.mark.parametrize(("weight", "rate"), [(0.01, 0.8), (10.0, 0.6)])
def test_the_pull_is_that_of_drawn_groups(weight: float, rate: float) -> None:
    draws = np.random.default_rng(0)
    won = draws.random((200_000, ROLLOUTS)) < rate
    routine = draws.random(won.shape) < 0.5
    both = (won & routine).any(1) & (won & ~routine).any(1)
    won, routine = won[both], routine[both]
    rewards = np.where(won, SUCCESS - weight * DELTA * ~routine, 0.0)
    advantages = (rewards - rewards.mean(1, keepdims=True)) / rewards.std(1, keepdims=True)
    kinds = [(advantages * kind).sum(1) / kind.sum(1) for kind in (won & routine, won & ~routine)]
    assert pull(weight, rate) == pytest.approx((kinds[0] - kinds[1]).mean(), rel=0.02)


def test_where_all_win_the_weight_cancels() -> None:
    assert len({round(pull(weight, 1.0), 9) for weight in WEIGHTS}) == 1
