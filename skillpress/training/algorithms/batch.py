"""One training step's rollouts as flat arrays. Algorithms read these instead of trajectories.

A training step's data takes these forms on its way from the engine to the loss:

    Completion    the engine's response: token ids, and their log-probabilities as an array
    Trajectory    an episode, whose steps have texts, tokens and rewards; files store these
    Batch         all decisions of a step's groups as arrays [steps] and [trajectories]. It is made once from
                  the episodes; what is selected and what is replayed are rows of such batches
    Samples       the decisions at which something was sampled: tokens, log-probabilities and advantages as
                  arrays [tokens]. They are made once, with their chains; minibatches and passes through the
                  model are rows
    ScoredTokens  the samples of one pass as tensors, with the model's log-probabilities; the input of a loss

A reward has named parts, and each part is credited to a trajectory or to a step. A part credited to the
*trajectory* is a reward of the whole episode, and every step is credited with the sum. A part credited to its
*step* counts for that step alone. The penalty that shaping takes off a success belongs to the trajectory,
unless its steps pay their own parts of it (``charges``). A part credited by its *mean* is
divided by the number of steps, and the trajectory is credited with it: a measure of every step adds at most
its weight, however long the episode is.

A step here is anything that the policy sampled. If an agent summarises its past, each summary is a step too
and learns from the episode's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skillpress.core.trajectory import Credit, Trajectory

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

CORE = "success"
"""The part of the reward that says how well the task itself was done."""

DISCOUNT = "discount"
"""The part of the reward that a discount takes off."""

SumOverRanks = Callable[[dict[str, float]], dict[str, float]]
"""Adds each value up over the processes that share a training step."""


def one_process(values: dict[str, float]) -> dict[str, float]:
    """The sum over a single process: the values themselves."""
    return values


@dataclass(frozen=True)
class Batch:
    """The rollouts of one training step that one process holds; groups are never split between processes.

    The steps of a trajectory are adjacent and in order; trajectories are in the order of their numbers.
    """

    parts: Mapping[str, Floats]
    """Part of the reward to its values, [steps]; 0 at a step without that part."""
    credit: Mapping[str, Credit]
    """Part of the reward to whether the trajectory or the step is credited with it."""
    trajectory: Indices
    """[steps] the number of each step's trajectory, counted from 0."""
    state: Indices
    """[steps] a number of the environment's state (``Trajectory.states``). Steps of a group that were taken
    in the same state share it, whatever their prompts showed of the past."""
    tokens: Indices
    """[steps] number of sampled tokens; 0 where the prompt did not fit, so nothing was sampled."""
    made: Indices
    """[steps] k, the steps that the episode had made before each."""
    group: Indices
    """[trajectories] the number of each trajectory's group, counted from 0."""
    won: Flags
    """[trajectories] whether each won its task."""
    length: Indices
    """[trajectories] number of steps."""
    core_reward: Floats
    """[trajectories] the sum of the part ``success``."""
    core_maximum: float
    """The largest possible core reward."""
    longest_response: int
    """The most tokens of a response (``sampling.max_new_tokens``)."""
    segments: Floats
    """[trajectories] seg(s, 𝒞), the number of phrases that the skills need under the step's dictionary; 0
    before it is fitted, and where there is no dictionary."""
    penalty: Floats
    """[trajectories] the penalty that shaping takes off; 0 before shaping."""
    charges: Floats | None = None
    """[steps] the part of its trajectory's penalty that each step pays alone; None where trajectories pay."""
    values: Floats | None = None
    """[steps] V of each step's state before the updates, 0 where nothing was sampled. None before values are
    computed, and where the algorithm asks for no values."""

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """The trajectories of several batches, one batch after another, before shaping. The batches have
        different groups.

        Raises:
            ValueError: a part of the reward is credited to steps in one place and to trajectories in another.
        """
        credit: dict[str, Credit] = {}
        for part in parts:
            for name, counts_for in part.credit.items():
                _same_credit(credit, name, counts_for)
        return cls(
            parts={
                name: np.concatenate([part.parts.get(name, np.zeros(len(part.tokens))) for part in parts])
                for name in credit
            },
            credit=credit,
            trajectory=_one_behind_the_other([part.trajectory for part in parts]),
            state=_one_behind_the_other([part.state for part in parts]),
            tokens=np.concatenate([part.tokens for part in parts]),
            made=np.concatenate([part.made for part in parts]),
            group=_one_behind_the_other([part.group for part in parts]),
            won=np.concatenate([part.won for part in parts]),
            length=np.concatenate([part.length for part in parts]),
            core_reward=np.concatenate([part.core_reward for part in parts]),
            core_maximum=parts[0].core_maximum,
            longest_response=parts[0].longest_response,
            segments=np.concatenate([part.segments for part in parts]),
            penalty=np.concatenate([part.penalty for part in parts]),
        )

    def select(self, rows: Indices) -> Batch:
        """Only these trajectories, before shaping; ``rows`` are increasing. Groups and states that have none
        of them left are not counted."""
        steps = members(rows, self.length)
        return Batch(
            parts={name: values[steps] for name, values in self.parts.items()},
            credit=self.credit,
            trajectory=np.repeat(np.arange(len(rows)), self.length[rows]),
            state=_renumbered(self.state[steps]),
            tokens=self.tokens[steps],
            made=self.made[steps],
            group=_renumbered(self.group[rows]),
            won=self.won[rows],
            length=self.length[rows],
            core_reward=self.core_reward[rows],
            core_maximum=self.core_maximum,
            longest_response=self.longest_response,
            segments=self.segments[rows],
            penalty=self.penalty[rows],
        )

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def step_group(self) -> Indices:
        """[steps] the number of each step's group."""
        found: Indices = self.group[self.trajectory]
        return found

    @property
    def returns(self) -> Floats:
        """[trajectories] the sum of the parts credited to the trajectory, minus the penalty where
        trajectories pay."""
        summed = np.bincount(self.trajectory, self._sum("trajectory"), minlength=len(self.group))
        returns: Floats = summed - self._shared_penalty
        return returns

    @property
    def own(self) -> Floats:
        """[steps] the sum of the parts that count for their own step alone, minus the step's charge."""
        own = self._sum("step")
        if self.charges is not None:
            own -= self.charges
        return own

    @property
    def scores(self) -> Floats:
        """[steps] the score of each without discount: its trajectory's return plus its own parts."""
        scores: Floats = self.returns[self.trajectory] + self.own
        return scores

    @property
    def rewards(self) -> Floats:
        """[steps] the parts credited to the trajectory, at the steps that earned them. A penalty that the
        trajectory pays is part of the last reward, as a success is."""
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

        rewards before the step count in full, and G_k is the discounted return. At γ = 1 the result is the
        batch itself, in which every step is credited with the whole return. The discount becomes one more
        part of the step's own reward, so every mean of scores includes it.
        """
        if discount == 1.0:
            return self
        late = self.rewards_to_go(1.0) - self.rewards_to_go(discount)
        parts: dict[str, Floats] = {**self.parts, DISCOUNT: -late}
        return replace(self, parts=parts, credit={**self.credit, DISCOUNT: "step"})

    @property
    def _shared_penalty(self) -> Floats:
        """[trajectories] the penalty that all steps of each share."""
        return self.penalty if self.charges is None else np.zeros(len(self.penalty))

    def _sum(self, credit: Credit) -> Floats:
        total = np.zeros(len(self.trajectory))
        for name, values in self.parts.items():
            if self.credit[name] == credit:
                total += values
        return total


def batch_of(
    trajectories: Sequence[Trajectory],
    groups: Sequence[int],
    core_maximum: float,
    longest_response: int,
) -> Batch:
    """The batch of these trajectories, before shaping.

    Args:
        groups: the group of each trajectory, counted from 0.
        core_maximum: the core reward of a perfect episode.
        longest_response: the most tokens of a response (``sampling.max_new_tokens``).

    Raises:
        ValueError: a part of the reward is credited to steps in one place and to trajectories in another.
    """
    steps = [step for trajectory in trajectories for step in trajectory.decisions]
    credit: dict[str, Credit] = {}
    values: dict[str, Floats] = {}
    for number, step in enumerate(steps):
        for part in step.reward_parts:
            _same_credit(credit, part.name, part.credit)
            values.setdefault(part.name, np.zeros(len(steps)))[number] += part.value
    lengths = np.array([len(trajectory.decisions) for trajectory in trajectories], np.int64)
    index = np.repeat(np.arange(len(trajectories)), lengths)
    for name in (name for name, counts_for in credit.items() if counts_for == "mean"):
        values[name] /= lengths[index]
        credit[name] = "trajectory"
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
        made=np.array([made for trajectory in trajectories for made in trajectory.steps_before], np.int64),
        group=np.array(groups, np.int64),
        won=np.array([trajectory.won for trajectory in trajectories], np.bool_),
        length=lengths,
        core_reward=np.bincount(index, core, minlength=len(trajectories)).astype(np.float64),
        core_maximum=core_maximum,
        longest_response=longest_response,
        segments=np.zeros(len(trajectories)),
        penalty=np.zeros(len(trajectories)),
    )


def members(groups: Indices, sizes: Indices) -> Indices:
    """The positions of some groups' members, one group after another.

    Args:
        groups: numbers of groups, in any order.
        sizes: number of members of every group; members are stored group by group.
    """
    own = sizes[groups]
    first = (np.cumsum(sizes) - sizes)[groups]
    places: Indices = np.arange(own.sum()) + np.repeat(first - (np.cumsum(own) - own), own)
    return places


def _same_credit(known: dict[str, Credit], name: str, credit: Credit) -> None:
    if known.setdefault(name, credit) != credit:
        raise ValueError(f"reward part {name!r} is credited both to steps and to trajectories")


def _one_behind_the_other(parts: Sequence[Indices]) -> Indices:
    """The parts joined, with numbers shifted so that no two parts share one. Each part counts from 0."""
    counts = [int(part.max(initial=-1)) + 1 for part in parts]
    offsets = np.cumsum([0, *counts[:-1]])
    return np.concatenate([part + offset for part, offset in zip(parts, offsets, strict=True)])


def _renumbered(numbers: Indices) -> Indices:
    """The numbers replaced by 0, 1, ... in the order in which each first occurs."""
    _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    renumbered: Indices = np.argsort(np.argsort(first))[place]
    return renumbered
