"""Metrics of a training step's rollouts, over all ranks.

Success, lengths and invalid actions describe all played episodes, because a selection that keeps the
instructive half must not make the policy look worse. Returns and advantages describe the episodes that teach,
including replayed ones.

If the reward has parts other than success and invalid actions, each has a column ``reward/<name>``: its mean
per step. With ``response_tokens`` and the steps of an episode, these are the curves of L0's Figure 3.

``advantage_of_all_won`` is the part of the learning signal that says *how* to succeed and not *whether*:
groups in which every episode succeeded have this share of the sum of |A| over steps. Only shaping
distinguishes the episodes of such a group. Divided by the group's deviation, their advantages are as large as
any others, however small the penalty (docs/methods.md has the calculation).

``shaping_alone`` is the share of groups whose episodes did equally well (one core reward) but have different
scores: by the penalties of shaping and of invalid actions, or by measured facts. Among them are
groups in which all failed. ``advantage_of_shaping_alone`` is their part of the sum of |A|.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from skillpress.core.trajectory import Step, Trajectory
from skillpress.rollouts.agents.reward import INVALID
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import CORE, Batch, Flags, Floats
from skillpress.training.algorithms.group_statistics import alike


def batch_metrics(
    played: Sequence[Trajectory], batch: Batch, advantages: Floats, ranks: Ranks
) -> dict[str, float]:
    """The metrics of episodes for one row of the training curve.

    Args:
        played: all episodes of this rank, including those that were not selected.
        batch: the episodes that teach.
        advantages: those of the steps of ``batch``.
    """
    won = [trajectory for trajectory in played if trajectory.won]
    teaching = np.zeros(len(batch.group), np.bool_)
    teaching[batch.trajectory[some_advantage(advantages)]] = True
    decisions = [step for trajectory in played for step in trajectory.decisions]
    rewarded = _rewarded(trajectory.steps for trajectory in played)
    size = _sizes(batch, advantages)
    group_size = np.bincount(batch.step_group, size, minlength=batch.groups)
    shaped = ~_varied(batch) & ~alike(batch)
    total = ranks.sum(
        {
            **rewarded,
            "decisions": len(decisions),
            "tokens": sum(len(step.response_ids) for step in decisions),
            "episodes": len(played),
            "won": len(won),
            "won_steps": sum(len(trajectory.steps) for trajectory in won),
            "steps": sum(len(trajectory.steps) for trajectory in played),
            "summaries": sum(len(trajectory.summaries) for trajectory in played),
            "invalid": sum(step.invalid is not None for t in played for step in t.steps),
            "taught": len(batch.group),
            "kept": batch.new,
            "return": float(batch.returns.sum() + batch.own.sum()),
            "silent": float((~teaching).sum()),
            "advantage": float(size.sum()),
            "advantage_of_all_won": float(group_size[_all_won(batch)].sum()),
            "groups": batch.groups,
            "shaping_alone": float(shaped.sum()),
            "advantage_of_shaping_alone": float(group_size[shaped].sum()),
        }
    )
    metrics = {
        "success": total["won"] / total["episodes"],
        "invalid": total["invalid"] / total["steps"],
        "episode_length": total["steps"] / total["episodes"],
        "environment_steps": total["steps"],
        "kept": total["kept"] / total["episodes"],
    }
    if rewarded:
        metrics |= {name: total[name] / total["steps"] for name in rewarded}
        metrics["response_tokens"] = total["tokens"] / total["decisions"]
    if total["summaries"]:
        metrics["summaries"] = total["summaries"] / total["episodes"]
    if total["taught"]:
        metrics["return"] = total["return"] / total["taught"]
        metrics["zero_advantage"] = total["silent"] / total["taught"]
        metrics["shaping_alone"] = total["shaping_alone"] / total["groups"]
    if total["advantage"]:
        for name in ("advantage_of_all_won", "advantage_of_shaping_alone"):
            metrics[name] = total[name] / total["advantage"]
    if total["won"]:
        metrics["success_length"] = total["won_steps"] / total["won"]
    return metrics


def some_advantage(advantages: Floats) -> Flags:
    """[steps] whether any token of a step has an advantage other than 0."""
    nonzero: Flags = advantages != 0
    return nonzero if nonzero.ndim == 1 else np.any(nonzero, axis=1)


def _sizes(batch: Batch, advantages: Floats) -> Floats:
    """[steps] |A|, or its mean over tokens if they differ; 0 where nothing was sampled."""
    sizes = np.abs(advantages)
    if sizes.ndim == 2:
        asked = np.arange(sizes.shape[1]) < batch.tokens[:, None]
        # Columns beyond a response are padding, whose advantages mean nothing.
        sizes = (sizes * asked).sum(axis=1) / np.maximum(batch.tokens, 1)
    found: Floats = np.where(batch.tokens > 0, sizes, 0.0)
    return found


def _all_won(batch: Batch) -> NDArray[np.bool_]:
    """[groups] True where all episodes of the group succeeded."""
    # A group without a loss; sums of zeros and ones are exact.
    found: NDArray[np.bool_] = np.bincount(batch.group, ~batch.won) == 0
    return found


def _varied(batch: Batch) -> NDArray[np.bool_]:
    """[groups] True where the core rewards of the group's episodes are not all equal."""
    lowest, highest = np.full(batch.groups, np.inf), np.full(batch.groups, -np.inf)
    np.minimum.at(lowest, batch.group, batch.core_reward)
    np.maximum.at(highest, batch.group, batch.core_reward)
    return lowest < highest


def _rewarded(episodes: Iterable[Sequence[Step]]) -> dict[str, float]:
    """Column to the sum of a part of the reward; success and invalid actions have their own columns.

    Every step has all parts, so all ranks find the same columns.
    """
    sums: dict[str, float] = defaultdict(float)
    for step in chain.from_iterable(episodes):
        for part in step.reward_parts:
            if part.name not in (CORE, INVALID):
                sums[f"reward/{part.name}"] += part.value
    return dict(sums)
