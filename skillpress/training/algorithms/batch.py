"""One training step's rollouts as one table. From collection to the loss, everything reads its columns.

A training step's data takes these forms on its way from the engine to the loss:

    Trajectory    an episode, whose steps have texts, tokens and rewards; files store these
    Batch         all episodes of a step as columns of three levels: [trajectories], [steps] and [tokens].
                  Selection, shaping, advantages and scores add columns; a minibatch is a ``cut`` of it
    Pass          a cut that passes through the model together, and the same tokens on the model's device
    ScoredTokens  the columns of a pass that a loss reads, as tensors, with the model's log-probabilities

A reward has named parts, and each part is credited to a trajectory or to a step. A part credited to the
*trajectory* is a reward of the whole episode, and every step is credited with the sum. A part credited to its
*step* counts for that step alone. The penalty that shaping takes off a success belongs to the trajectory,
unless its steps pay their own parts of it (``charges``). A part credited by its *mean* is divided by the
number of steps and credited to the trajectory, so a measure of every step adds at most its weight.

A step here is anything that the policy sampled. If an agent summarises its past, each summary is a step too
and learns from the episode's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillpress.core.chains import Pairs
from skillpress.core.columns import (
    PerStep,
    PerToken,
    PerTrajectory,
    by_token,
    chosen,
    joined,
    joined_numbers,
    levels_of,
    members,
    renumbered,
)
from skillpress.core.logprobs import NO_LOGPROBS, Logprobs
from skillpress.core.trajectory import Credit, Step, Task, TokenIds, Trajectory

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

CORE = "success"
"""The part of the reward that says how well the task itself was done."""

DISCOUNT = "discount"
"""The part of the reward that a discount takes off."""

TEACHES, LEFT_OUT, FURTHER, REPLAYED = range(4)
"""Roles of an episode: it was played for this step and teaches, or ``algorithm.select`` left it out; it is a
further attempt that ``experience`` asked for; it was played for an earlier step and teaches again."""

SumOverRanks = Callable[[dict[str, float]], dict[str, float]]
"""Adds each value up over the processes that share a training step."""


def one_process(values: dict[str, float]) -> dict[str, float]:
    """The sum over a single process: the values themselves."""
    return values


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The rollouts of one training step that one process holds; groups are never split between processes.

    The steps of a trajectory are adjacent and in order; trajectories are in the order of their numbers. A
    ``cut`` has steps in any order, and no columns of trajectories.
    """

    credit: Mapping[str, Credit]
    """Part of the reward to whether the trajectory or the step is credited with it."""
    core_maximum: float
    """The largest possible core reward."""
    longest_response: int
    """The most tokens of a response (``sampling.max_new_tokens``)."""

    group: PerTrajectory[Indices]
    """The number of each trajectory's group, counted from 0."""
    won: PerTrajectory[Flags]
    """Whether each trajectory won its task."""
    length: PerTrajectory[Indices]
    """Number of steps."""
    core_reward: PerTrajectory[Floats]
    """The sum of the part ``success``."""
    segments: PerTrajectory[Floats]
    """seg(s, 𝒞), the phrases that the skills need under the step's dictionary; 0 where there is none."""
    penalty: PerTrajectory[Floats]
    """The penalty that shaping takes off; 0 before shaping."""
    role: PerTrajectory[Indices]
    """What the training step does with each trajectory: ``TEACHES``, ``LEFT_OUT``, ``FURTHER`` or
    ``REPLAYED``."""
    episodes: PerTrajectory[tuple[Trajectory, ...]]
    """The trajectories themselves, with their texts."""
    tasks: PerTrajectory[tuple[Task, ...] | None] = None
    """The task of each trajectory; None where nothing reads it."""

    trajectory: PerStep[Indices]
    """The number of each step's trajectory, counted from 0."""
    state: PerStep[Indices]
    """A number of the environment's state (``Trajectory.states``). Steps of a group that were taken in the
    same state share it, whatever their prompts showed of the past."""
    tokens: PerStep[Indices]
    """Number of sampled tokens; 0 where the prompt did not fit, so nothing was sampled."""
    made: PerStep[Indices]
    """k, the number of steps that the episode made before each step."""
    pairs: PerStep[Pairs]
    """Prompt and response of each step, and which of them extend one another."""
    parts: PerStep[Mapping[str, Floats]]
    """Part of the reward to its values; 0 at a step without that part."""
    charges: PerStep[Floats | None] = None
    """The part of its trajectory's penalty that each step pays alone; None where trajectories pay."""
    values: PerStep[Floats | None] = None
    """V of each step's state before the updates, 0 where nothing was sampled. None before values are
    computed, and where the algorithm asks for no values."""
    value_targets: PerStep[Floats | None] = None
    """The values that the states should have had; None without a value head."""
    value_weights: PerStep[Floats | None] = None
    """Weight of each state in its update's loss of values; an update's sum to 1 over all processes."""
    weights: PerStep[Floats]
    """Weight of each token of the step in the loss of its update; 0 before the updates are planned."""
    kl_factors: PerStep[Floats | None] = None
    """1 over the probability that the start policy scores each step, 0 where it does not; None if it scores
    all steps, and without a KL term (``loop/kl_share.py``)."""
    trajectory_sums: PerStep[Floats | None] = None
    """[steps, 4] the sums of each step's whole trajectory (``ratio_levels.py``); NaN where the update's own
    pass has them (``loop/own_scores.py``), None where no loss needs them."""
    plain_prompts: PerStep[tuple[TokenIds, ...] | None] = None
    """The prompts in which lessons are learned; None where these are rollouts."""
    age: PerStep[Indices | None] = None
    """Training steps by which the oldest weights that drew a token of each are behind the learner's; None
    before the updates, and for lessons."""

    logprobs: PerToken[Logprobs]
    """The engine's log-probabilities, response by response."""
    advantages: PerToken[Floats]
    """Advantages; 0 before they are computed."""
    proximal_logprobs: PerToken[Logprobs | None] = None
    """The learner's log-probabilities before the step's updates; NaN where the update's own pass has them
    (``loop/own_scores.py``), None where the engine's are used instead."""
    reference_logprobs: PerToken[Logprobs | None] = None
    """The start policy's log-probabilities, NaN where ``kl_factors`` is 0; None before they are computed, or
    without a KL."""

    @classmethod
    def of_steps(
        cls,
        steps: Sequence[Step],
        advantages: Floats | None = None,
        weights: Floats | None = None,
        **columns: Any,
    ) -> Batch:
        """A cut of these steps, such as lessons, without rewards.

        Args:
            advantages: as :func:`by_token` takes them; None is 0, for steps that are only scored.
            weights: None is 0 too.
        """
        pairs = Pairs.of([(step.prompt_ids, step.response_ids) for step in steps])
        none, zeros, tokens = np.zeros(0, np.int64), np.zeros(len(steps)), pairs.response_lengths
        made = cls(
            credit={},
            core_maximum=0.0,
            longest_response=0,
            group=none,
            won=np.zeros(0, np.bool_),
            length=none,
            core_reward=np.zeros(0),
            segments=np.zeros(0),
            penalty=np.zeros(0),
            role=none,
            episodes=(),
            trajectory=zeros.astype(np.int64),
            state=zeros.astype(np.int64),
            tokens=tokens,
            made=zeros.astype(np.int64),
            pairs=pairs,
            parts={},
            weights=zeros if weights is None else weights,
            logprobs=np.concatenate([NO_LOGPROBS, *(step.logprobs for step in steps)]),
            advantages=by_token(zeros if advantages is None else advantages, tokens),
        )
        return replace(made, **columns) if columns else made

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """The rows of several batches, one batch after another. The batches have different groups. A column
        that some of them do not have must be empty there.

        Raises:
            ValueError: a part of the reward is credited to steps in one place and to trajectories in another.
        """
        if len(batches) == 1:
            return batches[0]
        credit: dict[str, Credit] = {}
        for batch in batches:
            for name, counts_for in batch.credit.items():
                _same_credit(credit, name, counts_for)
        parts = [{name: batch.parts.get(name, np.zeros(len(batch))) for name in credit} for batch in batches]
        columns: dict[str, Any] = {"parts": {name: joined([each[name] for each in parts]) for name in credit}}
        for name in _LEVELS.keys() - columns.keys():
            each = [getattr(batch, name) for batch in batches]
            columns[name] = joined_numbers(each) if name in _NUMBERS else joined(each)
        return replace(batches[0], credit=credit, **columns)

    def select(self, rows: Indices) -> Batch:
        """Only these trajectories; ``rows`` are increasing. Groups and states without a remaining trajectory
        are not counted."""
        if len(rows) == len(self.group):
            return self
        found = self._rows({"trajectories": rows, "steps": members(rows, self.length)})
        return replace(
            found,
            trajectory=np.repeat(np.arange(len(rows)), found.length),
            state=renumbered(found.state),
            group=renumbered(found.group),
        )

    def cut(self, steps: Indices) -> Batch:
        """Only these steps, in this order, without the columns of trajectories."""
        return self._rows({"trajectories": np.zeros(0, np.int64), "steps": steps})

    def _rows(self, rows: dict[str, Indices]) -> Batch:
        rows = {**rows, "tokens": members(rows["steps"], self.tokens)}
        return replace(
            self, **{name: chosen(getattr(self, name), rows[level]) for name, level in _LEVELS.items()}
        )

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.tokens)

    @property
    def teaching(self) -> Batch:
        """The trajectories that teach, replayed ones last."""
        return self.select(np.flatnonzero((self.role == TEACHES) | (self.role == REPLAYED)))

    def played_as(self, *roles: int) -> list[Trajectory]:
        """The episodes with one of these roles."""
        return [each for each, role in zip(self.episodes, self.role, strict=True) if role in roles]

    @property
    def new(self) -> int:
        """Number of trajectories that teach and were played for this step; they come before replayed ones."""
        return int((self.role == TEACHES).sum())

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
            own -= self.charges  # ``_sum`` made a new array
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
        for step in range(len(rewards) - 2, -1, -1):  # in place: ``rewards`` makes a new array
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
        """[trajectories] the penalty that all steps of a trajectory share."""
        return self.penalty if self.charges is None else np.zeros(len(self.penalty))

    def _sum(self, credit: Credit) -> Floats:
        total = np.zeros(len(self.trajectory))
        for name, values in self.parts.items():
            if self.credit[name] == credit:
                total += values
        return total


_LEVELS = levels_of(Batch)
"""Column to its level."""
_NUMBERS = ("group", "trajectory", "state")
"""Columns of numbers that count from 0."""


def batch_of(
    trajectories: Sequence[Trajectory],
    groups: Sequence[int],
    core_maximum: float,
    longest_response: int,
    tasks: Sequence[Task] | None = None,
) -> Batch:
    """The batch of these trajectories, before shaping; all of them teach.

    Args:
        groups: the group of each trajectory, counted from 0.
        core_maximum: the core reward of a perfect episode.
        longest_response: the most tokens of a response (``sampling.max_new_tokens``).
        tasks: the task of each trajectory.

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
    states: dict[tuple[int, bool, str], int] = {}  # with the group: tasks may share state names
    seen = [
        (group, *state)
        for trajectory, group in zip(trajectories, groups, strict=True)
        for state in trajectory.states
    ]
    return Batch.of_steps(
        steps,
        credit=credit,
        core_maximum=core_maximum,
        longest_response=longest_response,
        parts=values,
        trajectory=index,
        state=np.array([states.setdefault(state, len(states)) for state in seen], np.int64),
        made=np.array([made for trajectory in trajectories for made in trajectory.steps_before], np.int64),
        group=np.array(groups, np.int64),
        won=np.array([trajectory.won for trajectory in trajectories], np.bool_),
        length=lengths,
        core_reward=np.bincount(index, core, minlength=len(trajectories)).astype(np.float64),
        segments=np.zeros(len(trajectories)),
        penalty=np.zeros(len(trajectories)),
        role=np.full(len(trajectories), TEACHES),
        episodes=tuple(trajectories),
        tasks=None if tasks is None else tuple(tasks),
    )


def _same_credit(known: dict[str, Credit], name: str, credit: Credit) -> None:
    if known.setdefault(name, credit) != credit:
        raise ValueError(f"reward part {name!r} is credited both to steps and to trajectories")
