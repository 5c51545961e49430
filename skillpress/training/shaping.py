"""The E-step and what it does to rewards (ReuseRL Alg. 1).

A batch's successes, with those remembered in the buffer, are the corpus that a dictionary is fitted
to; each success then pays for the number of phrases it needs. Without a success there is nothing to
fit and rewards stay as they are. The dictionary is fitted under every shaping, so that the curves of
all methods show how compressible their successes are, and how many of them could pay less by doing more
(``skills/exploitable_rate``, see ``skillpress.skills.exploitable``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpress.environments.bundle import Projection
from skillpress.params import RewardParameters, SkillParameters
from skillpress.skills import SkillDictionary, SuccessBuffer, exploitable_rate, fit, make_shaping
from skillpress.training.distributed import Ranks
from skillpress.trajectory import Task, Trajectory


@dataclass(frozen=True)
class ShapedReturns:
    """What one batch is judged by."""

    returns: NDArray[np.float64]
    """[trajectories] R - penalties for invalid actions - lambda [success] seg/T."""
    dictionary: SkillDictionary | None
    """The E-step's dictionary; None when nothing succeeded."""
    metrics: dict[str, float]


class RewardShaper:
    """Holds the success buffer between batches."""

    def __init__(
        self,
        projection: Projection,
        skills: SkillParameters,
        reward: RewardParameters,
        max_steps: int,
        ranks: Ranks,
        seed: int,
    ) -> None:
        """``max_steps`` is T; ``seed`` is for searches that draw at random."""
        self._projection, self._skills, self._ranks, self._seed = projection, skills, ranks, seed
        self._shaping = make_shaping(reward.shaping, reward.efficiency, max_steps)
        self.buffer = SuccessBuffer(skills.buffer)

    def __call__(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> ShapedReturns:
        """Shape the returns of this rank's trajectories; ``tasks[i]`` is what trajectory i played."""
        sequences = [
            tuple(skill for skill in self._projection(task, trajectory) if skill is not None)
            for task, trajectory in zip(tasks, trajectories, strict=True)
        ]
        won = [trajectory.won for trajectory in trajectories]
        successes = self._ranks.gather(
            [s for s, success in zip(sequences, won, strict=True) if success and s]
        )
        dictionary, metrics = None, {}
        if successes:
            started = time.perf_counter()
            dictionary = fit(
                self.buffer.corpus(successes),
                self._projection.alphabet,
                self._skills.max_phrase_length,
                self._skills.search,
                self._seed,
                self._skills.closure,
            )
            self.buffer.push(successes)
            metrics = {
                "dictionary/phrases": float(len(dictionary.phrases)),
                "dictionary/description_length": dictionary.description_length,
                "dictionary/segments": float(np.mean(dictionary.costs(successes))),
                "seconds/dictionary": time.perf_counter() - started,
                "skills/exploitable_rate": exploitable_rate(successes, dictionary),
            }
        penalty = self._shaping(won, sequences, dictionary)
        returns = np.array([trajectory.total_reward for trajectory in trajectories]) - penalty
        return ShapedReturns(returns, dictionary, metrics)
