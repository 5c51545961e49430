"""The formula of the algorithm, computed by hand for a step of two episodes."""

import numpy as np
import pytest
from my_lab.batch_baseline import BatchBaseline

from skillpress.core import RewardPart, Step, Trajectory
from skillpress.training.algorithms.batch import batch_of, one_process

PARAMETERS = {
    "name": "my_lab.batch_baseline:BatchBaseline",
    "failure_weight": 0.5,
    "kl_coefficient": 0.0,
    "select": {"name": "none"},
}


def episode(number: int, won: bool) -> Trajectory:
    part = RewardPart("success", float(won), "trajectory")
    step = Step(
        (),
        (),
        logprobs=np.empty(0, np.float32),
        thought="",
        action="forward",
        observation="",
        invalid=None,
        reward_parts=(part,),
    )
    return Trajectory(
        "to-1",
        "group",
        rollout_index=number,
        steps=(step,),
        won=won,
        terminated=True,
        truncated=False,
        outcome="won" if won else "lost",
        policy_version=0,
        seed=0,
    )


def test_a_failure_counts_for_half() -> None:
    algorithm = BatchBaseline.model_validate(PARAMETERS)
    batch = batch_of([episode(0, True), episode(1, False)], [0, 0], core_maximum=1.0, longest_response=1)
    np.testing.assert_allclose(algorithm.advantages(batch, one_process), [0.5, -0.25])


def test_a_weight_above_1_is_refused() -> None:
    with pytest.raises(ValueError, match="failure_weight"):
        BatchBaseline.model_validate(PARAMETERS | {"failure_weight": 2.0})
