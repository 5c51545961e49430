"""What the rollouts of a training step looked like, over all ranks.

Success, lengths and invalid actions are of everything that was played; a selection that keeps the
instructive half must not make the policy look half as good. Returns and advantages are of what teaches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skillpress.algorithms.batch import Batch, Floats
from skillpress.training.samples import some_advantage
from skillpress.trajectory import Trajectory
from skillpress.workers.distributed import Ranks


def batch_metrics(
    played: Sequence[Trajectory], batch: Batch, advantages: Floats, ranks: Ranks
) -> dict[str, float]:
    """One row of the training curve, as far as it describes episodes.

    Args:
        played: all episodes of this rank, those that were left out included.
        batch: those that teach.
        advantages: of the steps of ``batch``.
    """
    won = [trajectory for trajectory in played if trajectory.won]
    teaching = np.zeros(len(batch.group), np.bool_)
    teaching[batch.trajectory[some_advantage(advantages)]] = True
    total = ranks.sum(
        {
            "episodes": len(played),
            "won": len(won),
            "won_steps": sum(len(trajectory.steps) for trajectory in won),
            "steps": sum(len(trajectory.steps) for trajectory in played),
            "invalid": sum(step.invalid is not None for t in played for step in t.steps),
            "kept": len(batch.group),
            "return": float(batch.returns.sum() + batch.own.sum()),
            "silent": float((~teaching).sum()),
        }
    )
    metrics = {
        "success": total["won"] / total["episodes"],
        "invalid": total["invalid"] / total["steps"],
        "episode_length": total["steps"] / total["episodes"],
        "kept": total["kept"] / total["episodes"],
    }
    if total["kept"]:
        metrics["return"] = total["return"] / total["kept"]
        metrics["zero_advantage"] = total["silent"] / total["kept"]
    if total["won"]:
        metrics["success_length"] = total["won_steps"] / total["won"]
    return metrics
