"""How likely trajectories are under one policy relative to another, turn by turn.

The environment's part of P(tau) does not depend on the policy and cancels (*Language as a Universal Interface
for Reinforcement Learning Agents*, 1.5):

    ln P(tau | theta) / P(tau | theta') = sum over turns k, over tokens t of
                                          ln p_theta(v_kt | X_k, v_k,<t) - ln p_theta'(v_kt | X_k, v_k,<t)

Its exponential is the weight of a trajectory of theta' in a mean over theta. Weighted samples are worth fewer
samples than their count, by Kish's effective sample size (sum w)^2 / sum w^2. The more turns a weight
multiplies, the fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.trajectory import Trajectory

TURN_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "group_id": pl.String,
    "policy": pl.String,
    "run": pl.Int32,
    "rollout_index": pl.Int32,
    "turn": pl.Int32,
    "tokens": pl.Int32,
    "logprob_a": pl.Float64,
    "logprob_b": pl.Float64,
    "log_ratio": pl.Float64,
    "log_ratio_so_far": pl.Float64,
}
"""One row per turn, in the order of acting. A turn is a decision of the agent, summaries included, counted
from 0. ``log_ratio`` is ``logprob_a`` - ``logprob_b``, and ``log_ratio_so_far`` its sum up to this turn."""

QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
"""For each name, the share of values below the quantile."""


@dataclass(frozen=True)
class Spread:
    """The distribution of log ratios, and the worth of their weights."""

    count: int
    mean: float
    deviation: float
    """Sample deviation; 0 for a single ratio."""
    quantiles: dict[str, float]
    """The log ratio at each quantile in ``QUANTILES``."""
    effective: float
    """Effective sample size of the weights exp(log ratio): between 1 and ``count``."""

    @property
    def effective_share(self) -> float:
        """The effective sample size as a share of ``count``."""
        return self.effective / self.count

    @classmethod
    def of(cls, log_ratios: NDArray[np.float64]) -> Spread:
        """The spread of one or more log ratios."""
        count = len(log_ratios)
        return cls(
            count=count,
            mean=float(log_ratios.mean()),
            deviation=float(log_ratios.std(ddof=1)) if count > 1 else 0.0,
            quantiles={name: float(np.quantile(log_ratios, share)) for name, share in QUANTILES.items()},
            effective=effective_size(log_ratios),
        )


def effective_size(log_weights: NDArray[np.float64]) -> float:
    """(sum w)^2 / sum w^2 of the weights exp(log weight), for weights of any size."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def turn_table(
    trajectories: Sequence[Trajectory], first: NDArray[np.float64], second: NDArray[np.float64]
) -> pl.DataFrame:
    """Rows of ``TURN_SCHEMA``.

    Args:
        first: [decisions of all trajectories in order] log-probabilities under theta, policy A.
        second: the same under theta', policy B.
    """
    counts = [len(trajectory.decisions) for trajectory in trajectories]
    ratios = first - second
    so_far = [np.cumsum(part) for part in np.split(ratios, np.cumsum(counts)[:-1])] if counts else []
    played = [t for t, count in zip(trajectories, counts, strict=True) for _ in range(count)]
    names = ("task_id", "group_id", "policy", "run", "rollout_index")
    columns = {name: [getattr(trajectory, name) for trajectory in played] for name in names}
    return pl.DataFrame(
        {
            **columns,
            "turn": [turn for count in counts for turn in range(count)],
            "tokens": [len(turn.response_ids) for t in trajectories for turn in t.decisions],
            "logprob_a": first,
            "logprob_b": second,
            "log_ratio": ratios,
            "log_ratio_so_far": np.concatenate([np.zeros(0), *so_far]),
        },
        schema=TURN_SCHEMA,
    )


def of_trajectories(turns: pl.DataFrame) -> Spread:
    """The spread of whole trajectories' log ratios."""
    key = ["task_id", "group_id", "rollout_index"]
    whole = turns.group_by(key, maintain_order=True).agg(pl.col("log_ratio").sum())
    return Spread.of(whole["log_ratio"].to_numpy())


def of_turns(turns: pl.DataFrame) -> Spread:
    """The spread of single turns' log ratios, with equal weight for all turns."""
    return Spread.of(turns["log_ratio"].to_numpy())


def by_turn(turns: pl.DataFrame) -> list[Spread]:
    """For each turn k, the spread of the log ratios of turns 0 to k, over the trajectories that have a turn
    k.

    The trajectories differ with k: those that end early are missing from later turns.
    """
    parts = turns.sort("turn").partition_by("turn", maintain_order=True)
    return [Spread.of(part["log_ratio_so_far"].to_numpy()) for part in parts]
