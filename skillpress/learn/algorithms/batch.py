"""One training step's rollouts as flat arrays: what algorithms look at instead of trajectories.

A reward comes in named parts, and each part says for what it counts: a part credited to the
*trajectory* is a reward of the whole episode and every step of it answers for the sum; a part credited
to its *step* is taken up by that step alone. The penalty that shaping takes off a success belongs to
the trajectory, unless its steps pay their own parts of it (``charges``).

A step is here whatever the policy sampled: where an agent sums up its past, its summaries are steps as the
others are, and learn from what the episode came to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skillpress.core.trajectory import Credit, Trajectory

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

CORE = "success"
"""The part of the reward that says how well the task itself was done."""

DISCOUNT = "discount"
"""What a discount takes off, among the parts of the reward."""

SumOverRanks = Callable[[dict[str, float]], dict[str, float]]
"""Adds each value up over the processes that share a training step."""


def one_process(values: dict[str, float]) -> dict[str, float]:
    """The sum where there is a single process."""
    return values


@dataclass(frozen=True)
class Batch:
    """The rollouts of one step that one process holds; groups are never split between processes.

    The steps of a trajectory stand together and in order, trajectories in the order of their numbers.
    """

    parts: Mapping[str, Floats]
    """Part of the reward to [steps] its values; 0 at a step that does not have it."""
    credit: Mapping[str, Credit]
    """Part of the reward to what it counts for."""
    trajectory: Indices
    """[steps] the trajectory that each belongs to, counted from 0."""
    state: Indices
    """[steps] a number that the steps of a group share which were taken in the same state of the environment
    (``Trajectory.states``), whatever their prompts showed of the past."""
    tokens: Indices
    """[steps] sampled tokens; 0 where the prompt did not fit and nothing was asked."""
    group: Indices
    """[trajectories] the group that each belongs to, counted from 0."""
    won: NDArray[np.bool_]
    """[trajectories]."""
    length: Indices
    """[trajectories] steps."""
    core_reward: Floats
    """[trajectories] the sum of the part ``success``."""
    core_maximum: float
    """The largest core reward that there is."""
    segments: Floats
    """[trajectories] seg(s, 𝒞), phrases that the skills need under the step's dictionary; 0 before it is
    fitted, and where there is none."""
    penalty: Floats
    """[trajectories] what shaping takes off; 0 before it has been done."""
    charges: Floats | None = None
    """[steps] the part of its trajectory's penalty that each pays alone; None where trajectories pay."""
    values: Floats | None = None
    """[steps] V of each step's state before the updates, 0 where nothing was asked; None before they are
    computed, and where the algorithm asks for none."""

    @property
    def step_group(self) -> Indices:
        """[steps] the group that each belongs to."""
        found: Indices = self.group[self.trajectory]
        return found

    @property
    def returns(self) -> Floats:
        """[trajectories] the sum of the parts credited to the trajectory, less the penalty where
        trajectories pay."""
        summed = np.bincount(self.trajectory, self._sum("trajectory"), minlength=len(self.group))
        returns: Floats = summed - self._shared_penalty
        return returns

    @property
    def own(self) -> Floats:
        """[steps] the sum of the parts that count for their own step alone, less the step's charge."""
        own = self._sum("step")
        if self.charges is not None:
            own -= self.charges
        return own

    @property
    def scores(self) -> Floats:
        """[steps] what each is judged by without discount: its trajectory's return and its own parts."""
        scores: Floats = self.returns[self.trajectory] + self.own
        return scores

    @property
    def rewards(self) -> Floats:
        """[steps] the parts credited to the trajectory where they fell; a penalty that the trajectory pays
        is part of the last reward, as a success is."""
        rewards = self._sum("trajectory")
        if len(rewards):
            rewards[np.cumsum(self.length) - 1] -= self._shared_penalty
        return rewards

    def rewards_to_go(self, discount: float) -> Floats:
        """[steps] Σ_{k' >= k} γ^(k'-k) r_k' over the trajectory, with the step's own parts at k alone."""
        rewards = self.rewards
        for step in range(len(rewards) - 2, -1, -1):
            if self.trajectory[step] == self.trajectory[step + 1]:
                rewards[step] += discount * rewards[step + 1]
        returned: Floats = rewards + self.own
        return returned

    def discounted(self, discount: float) -> Batch:
        """The batch whose scores are

            score_k = Σ_{k' < k} r_k' + Σ_{k' >= k} γ^(k'-k) r_k' + the step's own parts:

        what was earned before the step in full, and the discounted return G_k. At γ = 1 it is the batch
        itself, in which every step answers for the whole return. What is taken off is one more part of the
        step's own, so that every mean of scores has it too.
        """
        if discount == 1.0:
            return self
        late = self.rewards_to_go(1.0) - self.rewards_to_go(discount)
        parts: dict[str, Floats] = {**self.parts, DISCOUNT: -late}
        return replace(self, parts=parts, credit={**self.credit, DISCOUNT: "step"})

    @property
    def _shared_penalty(self) -> Floats:
        """[trajectories] the penalty that all steps of each answer for."""
        return self.penalty if self.charges is None else np.zeros(len(self.penalty))

    def _sum(self, credit: Credit) -> Floats:
        total = np.zeros(len(self.trajectory))
        for name, values in self.parts.items():
            if self.credit[name] == credit:
                total += values
        return total


def batch_of(trajectories: Sequence[Trajectory], groups: Sequence[int], core_maximum: float) -> Batch:
    """The batch of these trajectories before it is shaped.

    Args:
        groups: the group of each trajectory, counted from 0.
        core_maximum: the core reward of a perfect episode.

    Raises:
        ValueError: a part of the reward is credited to steps here and to trajectories there.
    """
    steps = [step for trajectory in trajectories for step in trajectory.decisions]
    credit: dict[str, Credit] = {}
    values: dict[str, Floats] = {}
    for number, step in enumerate(steps):
        for part in step.reward_parts:
            if credit.setdefault(part.name, part.credit) != part.credit:
                raise ValueError(f"reward part {part.name!r} is credited both to steps and to trajectories")
            values.setdefault(part.name, np.zeros(len(steps)))[number] += part.value
    lengths = np.array([len(trajectory.decisions) for trajectory in trajectories], np.int64)
    index = np.repeat(np.arange(len(trajectories)), lengths)
    core: Floats = values.get(CORE, np.zeros(len(steps)))
    states: dict[tuple[int, bool, str], int] = {}
    seen = [
        (group, *state)
        for trajectory, group in zip(trajectories, groups, strict=True)
        for state in trajectory.states
    ]
    return Batch(
        parts=values,
        credit=credit,
        trajectory=index,
        state=np.array([states.setdefault(state, len(states)) for state in seen], np.int64),
        tokens=np.array([len(step.response_ids) for step in steps], np.int64),
        group=np.array(groups, np.int64),
        won=np.array([trajectory.won for trajectory in trajectories], np.bool_),
        length=lengths,
        core_reward=np.bincount(index, core, minlength=len(trajectories)).astype(np.float64),
        core_maximum=core_maximum,
        segments=np.zeros(len(trajectories)),
        penalty=np.zeros(len(trajectories)),
    )
