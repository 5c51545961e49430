"""Batches written by hand: one list per trajectory, one entry per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skillpress.core.logprobs import as_logprobs
from skillpress.core.registry import ALGORITHMS
from skillpress.core.sections import ByName
from skillpress.core.trajectory import Credit, RewardPart, Step, Trajectory
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Batch, batch_of
from tests.support.episodes import made_step

GRPO = {
    "name": "grpo", "scale": "none", "baseline_weighting": "per_trajectory", "discount": 1.0,
    "ratio": "token", "clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.0, "aggregation": "token_mean",
    "importance": "none", "importance_cap": 2.0, "select": {"name": "none"},
}  # fmt: skip
RLOO = {
    "name": "rloo", "discount": 1.0, "ratio": "token", "clip_low": 0.2, "clip_high": 0.2,
    "kl_coefficient": 0.0, "aggregation": "token_mean", "importance": "none", "importance_cap": 2.0,
    "select": {"name": "none"},
}  # fmt: skip
PPO = {
    "name": "ppo", "discount": 1.0, "gae_lambda": 1.0, "value_coefficient": 0.5, "value_clip": 0.2,
    "value_rate": 10.0, "ratio": "token", "clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.0,
    "aggregation": "token_mean", "importance": "none", "importance_cap": 2.0, "select": {"name": "none"},
}  # fmt: skip
GIGPO = {
    "name": "gigpo", "scale": "none", "step_weight": 1.0, "discount": 0.95, "ratio": "token", "clip_low": 0.2,
    "clip_high": 0.2, "kl_coefficient": 0.0, "aggregation": "token_mean", "importance": "none",
    "importance_cap": 2.0, "select": {"name": "none"},
}  # fmt: skip
DR_GRPO = {
    "name": "dr_grpo", "ratio": "token", "clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.0,
    "importance": "none", "importance_cap": 2.0, "select": {"name": "none"},
}  # fmt: skip
DAPO = {
    "name": "dapo", "overlong_share": 0.2, "overlong_penalty": 0.5, "ratio": "token", "clip_low": 0.2,
    "clip_high": 0.28, "kl_coefficient": 0.0, "aggregation": "token_mean", "importance": "none",
    "importance_cap": 2.0, "select": {"name": "varied_groups", "refills": 10},
}  # fmt: skip
EXPERT_ITERATION = {"name": "expert_iteration", "kl_coefficient": 0.0, "select": {"name": "none"}}
GSPO = {
    "name": "gspo", "baseline_weighting": "per_trajectory", "clip_low": 0.1, "clip_high": 0.1,
    "kl_coefficient": 0.0, "importance": "none", "importance_cap": 2.0, "select": {"name": "none"},
}  # fmt: skip
CISPO = {**GSPO, "name": "cispo", "clip_low": 1.0, "clip_high": 4.0}
REINFORCE_PP = {"name": "reinforce_pp", "discount": 1.0, "kl_coefficient": 0.0, "select": {"name": "none"}}


def algorithm(section: Mapping[str, object], **changes: object) -> Algorithm:
    """The algorithm of this section of params.yaml."""
    found = ByName(ALGORITHMS, "algorithm.name").read({**section, **changes})
    assert isinstance(found, Algorithm)
    return found


def clipped(
    clip_low: float, clip_high: float, kl_coefficient: float, ratio: str = "token", **keys: Any
) -> Algorithm:
    """An algorithm whose loss is the clipped surrogate with these coefficients."""
    coefficients = {"clip_low": clip_low, "clip_high": clip_high, "kl_coefficient": kl_coefficient}
    return algorithm(GRPO, ratio=ratio, **coefficients, **keys)


def step(
    parts: Sequence[tuple[str, float, Credit]],
    state_key: str | None = None,
    observation: str = "",
    tokens: int = 2,
) -> Step:
    """A step with this many tokens, in the state of this name, whose answer is this observation."""
    return Step(
        prompt_ids=(1,), response_ids=(2,) * tokens, logprobs=as_logprobs((-1.0,) * tokens), thought="",
        action="", observation=observation, invalid=None,
        reward_parts=tuple(RewardPart(*part) for part in parts), state_key=state_key,
    )  # fmt: skip


def trajectory(steps: Sequence[Step], won: bool = False) -> Trajectory:
    return Trajectory(
        task_id="t", group_id="g", rollout_index=0, steps=tuple(steps), won=won, terminated=won,
        truncated=not won, outcome="won" if won else "timeout", policy_version=0, seed=0,
    )  # fmt: skip


def batch(
    rewards: Sequence[Sequence[float]],
    groups: Sequence[int],
    own: Sequence[Sequence[float]] | None = None,
    core_maximum: float = 10.0,
    states: Sequence[str] | None = None,
    longest_response: int = 4,
) -> Batch:
    """Trajectories with these core rewards at their steps, and parts that count for a step alone. A letter
    names each step's state."""
    own = own if own is not None else [[0.0] * len(steps) for steps in rewards]
    states = states if states is not None else ["s" * len(steps) for steps in rewards]
    return batch_of(
        [
            trajectory(
                [
                    step([("success", reward, "trajectory"), ("invalid", mine, "step")], state)
                    for reward, mine, state in zip(steps, mines, seen, strict=True)
                ]
            )
            for steps, mines, seen in zip(rewards, own, states, strict=True)
        ],
        groups,
        core_maximum,
        longest_response,
    )


def of_returns(returns: Sequence[float], groups: Sequence[int], lengths: Sequence[int]) -> Batch:
    """Trajectories with these returns, all at their last step."""
    return batch([[0.0] * (n - 1) + [r] for r, n in zip(returns, lengths, strict=True)], groups)


def per_trajectory(advantages: np.ndarray, found: Batch) -> np.ndarray:
    """[trajectories] advantages that all steps of a trajectory share."""
    ends = np.cumsum(found.length) - 1
    np.testing.assert_array_equal(advantages, np.repeat(advantages[ends], found.length))
    return advantages[ends]


def steps_of_three_tokens() -> tuple[Step, ...]:
    """Five steps with prompts of two tokens."""
    return tuple(
        made_step(
            prompt_ids=(number, 3),
            response_ids=(5, 6, number),
            logprobs=np.full(3, -3.5, np.float32),
            plain_prompt_ids=(3, number),
        )
        for number in range(7, 12)
    )
