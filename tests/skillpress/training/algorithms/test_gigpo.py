"""GiGPO compared with its formulas, step by step, and its laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import one_process
from tests.support.training.batches import GIGPO, GRPO, algorithm, batch

SCALES = st.sampled_from(["none", "std"])
WALKS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(-5, 5).map(lambda x: round(x, 3))), min_size=1, max_size=5
    ),
    min_size=1,
    max_size=6,
)
"""Trajectories as (state, reward) of their steps."""


def played(walks, groups=None):
    rewards = [[reward for _, reward in walk] for walk in walks]
    states = ["".join(state for state, _ in walk) for walk in walks]
    return batch(rewards, groups or [0] * len(walks), states=states)


def judged(found, **changes) -> np.ndarray:
    return algorithm(GIGPO, **changes).advantages(found, one_process)


def relative(value: float, company: list[float], scale: str) -> float:
    """Eq. 3 and 7: a return relative to the returns it is compared with."""
    centred = value - np.mean(company)
    if scale == "none":
        return centred
    return centred / ((np.std(company, ddof=1) if len(company) > 1 else 0.0) + 1e-6)


def by_hand(walks, discount: float, weight: float, scale: str) -> list[float]:
    """Eq. 8 for one group, in loops."""
    totals = [sum(reward for _, reward in walk) for walk in walks]
    to_go = [
        [sum(discount ** (j - k) * walk[j][1] for j in range(k, len(walk))) for k in range(len(walk))]
        for walk in walks
    ]
    found = []
    for i, walk in enumerate(walks):
        for k, (state, _) in enumerate(walk):
            company = [
                to_go[other][at]
                for other, steps in enumerate(walks)
                for at, (seen, _) in enumerate(steps)
                if seen == state
            ]
            found.append(relative(totals[i], totals, scale) + weight * relative(to_go[i][k], company, scale))
    return found


@given(WALKS, st.floats(0, 1), st.floats(0, 3), SCALES)
def test_advantages_are_the_papers_equations(walks, discount: float, weight: float, scale: str) -> None:
    found = judged(played(walks), discount=discount, step_weight=weight, scale=scale)
    expected = by_hand(walks, discount, weight, scale)
    if scale == "none":
        np.testing.assert_allclose(found, expected, atol=1e-9)
    else:  # if a deviation is only rounding, both are some small number over 1e-6
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@given(WALKS, SCALES)
def test_without_company_or_without_weight_it_is_grpo(walks, scale: str) -> None:
    names = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZabcd")
    apart = played([[(next(names), reward) for _, reward in walk] for walk in walks])
    for found, weight in ((apart, 1.0), (played(walks), 0.0)):
        grpo = algorithm(GRPO, scale=scale).advantages(found, one_process)
        np.testing.assert_array_equal(judged(found, scale=scale, step_weight=weight), grpo)


@given(WALKS, WALKS)
def test_another_groups_steps_are_no_company(first, second) -> None:
    """So the distribution of groups over processes does not matter."""
    both = played([*first, *second], [0] * len(first) + [1] * len(second))
    np.testing.assert_allclose(
        judged(both), np.concatenate([judged(played(first)), judged(played(second))]), atol=1e-9
    )


def test_a_part_of_its_own_counts_for_its_step_on_both_levels() -> None:
    """Steps score 9, 8 and 0, trajectories 8.5 and 0: mean 4.25. In a the returns are 7 - 1 and 0."""
    found = judged(
        batch([[0.0, 8.0], [0.0]], [0, 0], own=[[-1.0, 0.0], [0.0]], states=["ab", "a"]),
        discount=0.875,
        step_weight=1.0,
    )
    np.testing.assert_allclose(found, [7 - 3.75 + 3, 8 - 3.75, -3.75 - 3])


def test_the_shapings_penalty_is_part_of_both_levels() -> None:
    plain = batch([[0.0, 10.0], [0.0]], [0, 0], states=["ab", "a"])
    shaped = judged(replace(plain, penalty=np.array([4.0, 0.0])))
    np.testing.assert_allclose(shaped, judged(batch([[0.0, 6.0], [0.0]], [0, 0], states=["ab", "a"])))


def test_how_many_steps_have_company_is_a_metric_of_all_processes() -> None:
    """Here two steps of three meet in a; another process adds five steps in two states, four with company."""
    found = batch([[0.0, 8.0], [0.0]], [0, 0], states=["ab", "a"])
    method = algorithm(GIGPO)
    assert method.describe(found, one_process) == {
        "step_groups/company": pytest.approx(2 / 3),
        "step_groups/size": pytest.approx(3 / 2),
    }
    others = {"steps": 5.0, "states": 2.0, "company": 4.0}
    shared = method.describe(found, lambda mine: {name: mine[name] + others[name] for name in mine})
    assert shared == {"step_groups/company": pytest.approx(6 / 8), "step_groups/size": pytest.approx(8 / 4)}
    assert method.describe(batch([], []), one_process) == {}
