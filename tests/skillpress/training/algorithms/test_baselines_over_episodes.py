"""An episode is judged alike however many calls the other episodes of its group make.

Where every call counts once in a baseline, agents that make many calls decide it, and others are judged by
them: agents were seen to stop calling tools (agent-lightning#489).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.registry import ALGORITHMS
from skillpress.core.trajectory import Step
from skillpress.training.algorithms.batch import Batch, batch_of, one_process
from tests.support.training.batches import (
    CISPO,
    DAPO,
    DR_GRPO,
    EXPERT_ITERATION,
    GIGPO,
    GRPO,
    GSPO,
    PPO,
    REINFORCE_PP,
    RLOO,
    algorithm,
    step,
    trajectory,
)

OVER_EPISODES = [
    GRPO,
    {**GRPO, "scale": "std"},
    RLOO,
    DR_GRPO,
    DAPO,
    GSPO,
    CISPO,
    {**GIGPO, "discount": 1.0},
    {**GIGPO, "discount": 1.0, "scale": "std"},
]
WITHOUT_BASELINE = [EXPERT_ITERATION]
OVER_CALLS = [REINFORCE_PP, PPO]
"""By its paper REINFORCE++ normalises over all steps of a batch. PPO's baseline is a value of the state, but
its advantages are normalised likewise, as implementations do."""

RETURNS = st.sampled_from([0.0, -0.5, 1.0, 10.0]) | st.floats(-10, 10)
CALLS = st.integers(2, 60)
EPISODES = st.lists(st.tuples(RETURNS, CALLS, CALLS), min_size=1, max_size=6)
"""A return and two numbers of calls."""


def played(groups: Sequence[Sequence[tuple[float, int]]]) -> Batch:
    """Episodes with these returns, at their last call, and numbers of calls. The first calls of a group are
    made in the same state, and all others in states of their own."""
    episodes = [episode for group in groups for episode in group]
    return batch_of(
        [
            trajectory(
                [
                    step([("success", last * (k + 1 == calls), "trajectory")], state(n, k))
                    for k in range(calls)
                ],
                won=last > 0,
            )
            for n, (last, calls) in enumerate(episodes)
        ],
        [number for number, group in enumerate(groups) for _ in group],
        10.0,
        4,
    )


def earning(reward: float, state: str) -> Step:
    return step([("success", reward, "trajectory")], state)


def state(episode: int, call: int) -> str:
    return f"{episode}/{call}" if call else "first"


def judged(section: dict, batch: Batch) -> np.ndarray:
    """[episodes, 2] the advantages of first and last call."""
    found = algorithm(section).advantages(batch, one_process)
    ends = np.cumsum(batch.length)
    return found[np.stack([ends - batch.length, ends - 1], 1)]


def test_every_algorithm_is_told_by_what_its_baseline_counts() -> None:
    stated = (*OVER_EPISODES, *WITHOUT_BASELINE, *OVER_CALLS)
    assert {section["name"] for section in stated} == set(ALGORITHMS)


@pytest.mark.parametrize("section", OVER_EPISODES, ids=lambda section: section["name"])
@given(st.lists(EPISODES, min_size=1, max_size=3))
def test_the_number_of_calls_changes_no_episodes_advantages(section: dict, groups: list) -> None:
    few, many = (
        played([[(episode[0], episode[which]) for episode in group] for group in groups]) for which in (1, 2)
    )
    np.testing.assert_allclose(judged(section, few), judged(section, many), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("section", OVER_EPISODES, ids=lambda section: section["name"])
def test_a_failure_of_50_calls_beside_a_success_of_2_weighs_as_a_short_one(section: dict) -> None:
    """Both are as far from the baseline."""
    success, failure = judged(section, played([[(10.0, 2), (0.0, 50)]]))
    np.testing.assert_allclose(success, -failure)
    assert (success > 0).all()


def test_expert_iteration_imitates_a_success_whatever_failures_did() -> None:
    """A token's share of the loss is its advantage times its weight, which is one over all tokens."""
    few, many = (played([[(10.0, 2), (0.0, calls)]]) for calls in (2, 50))
    shares = [judged(EXPERT_ITERATION, batch) / batch.tokens.sum() for batch in (few, many)]
    np.testing.assert_allclose(shares[0], shares[1])
    assert (shares[0][0] > 0).all() and (shares[0][1] == 0).all()


def test_reinforce_pp_and_ppo_normalise_over_calls() -> None:
    """Over all calls, those of the success and of the failure, advantages add up to 0."""
    for section in OVER_CALLS:
        for calls in (2, 50):
            batch = played([[(10.0, 2), (0.0, calls)]])
            values = None if section is REINFORCE_PP else np.zeros(len(batch.tokens))
            success, failure = judged(section, replace(batch, values=values))
            np.testing.assert_allclose(success / -failure, calls / 2)


def test_ppos_values_learn_the_same_returns_whatever_the_other_episodes_are() -> None:
    for calls in (2, 50):
        batch = played([[(10.0, 2), (0.0, calls)]])
        targets = algorithm(PPO).value_targets(replace(batch, values=np.zeros(len(batch.tokens))))
        assert targets.tolist() == [1.0] * 2 + [0.0] * calls


def test_gigpo_counts_every_visit_of_a_state_as_its_paper_does() -> None:
    """The failure comes back to the first state 8 times. The mean return there is 10 / 9."""
    won, lost = [earning(10.0, "first")], [earning(0.0, "first")] * 8
    batch = batch_of([trajectory(won, won=True), trajectory(lost)], [0, 0], 10.0, 4)
    found = algorithm({**GIGPO, "discount": 1.0}).advantages(batch, one_process)
    of_episodes = algorithm({**GIGPO, "step_weight": 0.0}).advantages(batch, one_process)
    np.testing.assert_allclose(of_episodes, [5.0] + [-5.0] * 8)
    np.testing.assert_allclose(found - of_episodes, [10 - 10 / 9] + [-10 / 9] * 8)
