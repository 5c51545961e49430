"""Group-relative advantages (GRPO, Shao et al. 2024; ReuseRL Alg. 1).

Every rollout of a task is judged against the other rollouts of that task. Two ways to count are in
use and give different gradients when episodes differ in length: one vote per trajectory (GiGPO's
Eq. 3), or one vote per step (verl-agent), where long failures dominate. Dividing by the group's
deviation is a choice too: where all rollouts of a group succeed only the shaping is left, and the
division then blows it up to full size whatever its weight lambda is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GroupAdvantage:
    """A_i = r_i - mean(group), over (std(group) + eps) if scaled; the same for every step of i."""

    vote: Literal["per_trajectory", "per_step"] = "per_trajectory"
    """Whose rewards enter mean and deviation: each trajectory once, or once per step it has."""
    scale: Literal["std", "none"] = "none"
    """Whether to divide by the group's (sample) standard deviation."""
    eps: float = 1e-6

    def __call__(
        self, returns: NDArray[np.float64], groups: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Advantages of trajectories.

        Args:
            returns: [trajectories] shaped returns r_i.
            groups: [trajectories] which group each belongs to, counted from 0.
            steps: [trajectories] how many steps each has.

        Returns:
            [trajectories] advantages; 0 in a group whose returns are all equal.
        """
        votes = steps.astype(np.float64) if self.vote == "per_step" else np.ones(len(returns))
        total = np.bincount(groups, votes)
        mean = np.bincount(groups, votes * returns) / total
        centred: NDArray[np.float64] = returns - mean[groups]
        # A group of equal returns teaches nothing; what the subtraction leaves there is rounding.
        centred[np.abs(centred) <= 1e-12 * np.maximum(1.0, np.abs(returns))] = 0.0
        if self.scale == "none":
            return centred
        variance = np.bincount(groups, votes * centred**2) / np.maximum(total - 1, 1)
        scaled: NDArray[np.float64] = centred / (np.sqrt(variance)[groups] + self.eps)
        return scaled


ADVANTAGES: dict[str, Callable[..., GroupAdvantage]] = {"group": GroupAdvantage}
"""Estimators by name; other ways to judge a rollout hang their hats here."""
