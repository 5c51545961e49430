"""GRPO over steps (Shao et al. 2024; ReuseRL Alg. 1), top to bottom in one reading.

    collect      tasks_per_step groups of rollouts_per_task episodes, all from recorded seeds
    shape        fit the dictionary to the successes (E-step), take lambda seg/T off their rewards
    judge        advantages within each group
    update       every step of every trajectory is a sample with its own state; clipped surrogate

What is left out: no value model, no discount (every step of a trajectory gets its advantage), no
resampling of groups that teach nothing; these are skipped, which changes nothing but the time when
there is no KL term.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skillpress.interface import Engine
from skillpress.params import TrainingParameters
from skillpress.rollout import Collector, requests
from skillpress.seeds import generator
from skillpress.training.advantages import GroupAdvantage
from skillpress.training.distributed import Ranks
from skillpress.training.learner import Learner
from skillpress.training.losses import token_weights
from skillpress.training.samples import Samples, step_samples
from skillpress.training.shaping import RewardShaper
from skillpress.trajectory import Task, Trajectory


@dataclass
class GRPO:
    """One experiment's training step; everything it needs is handed to it."""

    parameters: TrainingParameters
    seed: int
    tasks: Sequence[Task]
    collector: Collector
    engine: Engine
    learner: Learner
    shaper: RewardShaper
    ranks: Ranks
    history: dict[int, dict[tuple[str, ...], int]] = field(default_factory=dict)
    """Step to its dictionary's learned phrases and their uses; grows by every step with a success."""

    def step(self, step: int) -> dict[str, float]:
        """Training step number ``step`` (from 1); returns its metrics."""
        clock = _Clock()
        group_tasks = tasks_of_step(self.tasks, self.parameters.tasks_per_step, step, self.seed)
        mine = [group_tasks[index] for index in self.ranks.share(len(group_tasks))]
        size = self.parameters.rollouts_per_task
        wanted = requests(mine, size, self.seed, "train", step)
        before = self.collector.statistics.decisions, self.collector.statistics.environment_steps
        trajectories = self.collector.collect(wanted, step - 1)
        seconds = {"rollout": clock.lap()}
        decisions = self.collector.statistics.decisions - before[0]
        moves = self.collector.statistics.environment_steps - before[1]

        shaped = self.shaper([request.task for request in wanted], trajectories)
        advantage = GroupAdvantage(self.parameters.vote, self.parameters.scale)
        lengths = np.array([len(trajectory.steps) for trajectory in trajectories])
        groups = np.repeat(np.arange(len(mine)), size)
        advantages = advantage(shaped.returns, groups, lengths)
        if shaped.dictionary is not None:
            self.history[step] = shaped.dictionary.learned_counts
        seconds["shaping"] = clock.lap()

        metrics = self._update(trajectories, advantages, step)
        self.engine.update_weights(self.learner.weights(), step)
        seconds["update"] = clock.lap()
        return {
            **self._describe(trajectories, shaped.returns, advantages),
            **shaped.metrics,
            **metrics,
            "decisions_per_environment_step": decisions / moves,
            "environment_steps_per_second": moves / seconds["rollout"],
            **{f"seconds/{name}": value for name, value in seconds.items()},
        }

    def _update(
        self, trajectories: Sequence[Trajectory], advantages: NDArray[np.float64], step: int
    ) -> dict[str, float]:
        """The optimizer steps of one batch; metrics are means over all its tokens."""
        steps, sample_advantages = step_samples(trajectories, advantages)
        lengths = np.array([len(s.response_ids) for s in steps])
        totals = self.ranks.sum({"tokens": float(lengths.sum()), "sequences": float(len(steps))})
        weights = token_weights(lengths, self.parameters.aggregation, totals["tokens"], totals["sequences"])
        parts = self.parameters.minibatches
        samples = Samples(steps, sample_advantages, weights * parts)
        # With a KL term a sample without advantage still pulls towards the reference.
        useful = np.arange(len(steps)) if self.parameters.kl_coefficient else np.nonzero(sample_advantages)[0]
        order = generator(self.seed, "minibatches", step, self.ranks.rank).permutation(useful)
        metrics: dict[str, float] = {}
        for part in np.array_split(order, parts):
            for name, value in self.learner.update(samples.select(part)).items():
                metrics[name] = metrics.get(name, 0.0) + value / parts
        trained = self.ranks.sum({"tokens": float(lengths[useful].sum())})
        return {**metrics, "tokens_sampled": totals["tokens"], "tokens_trained": trained["tokens"]}

    def _describe(
        self,
        trajectories: Sequence[Trajectory],
        returns: NDArray[np.float64],
        advantages: NDArray[np.float64],
    ) -> dict[str, float]:
        """What the batch of all ranks looked like."""
        won = [t for t in trajectories if t.won]
        steps = [s for t in trajectories for s in t.steps]
        total = self.ranks.sum(
            {
                "episodes": len(trajectories),
                "won": len(won),
                "won_steps": sum(len(t.steps) for t in won),
                "steps": len(steps),
                "invalid": sum(s.invalid is not None for s in steps),
                "return": float(returns.sum()),
                "silent": float((advantages == 0).sum()),
            }
        )
        metrics = {
            "success": total["won"] / total["episodes"],
            "return": total["return"] / total["episodes"],
            "invalid": total["invalid"] / total["steps"],
            "episode_length": total["steps"] / total["episodes"],
            "zero_advantage": total["silent"] / total["episodes"],
        }
        if total["won"]:
            metrics["success_length"] = total["won_steps"] / total["won"]
        return metrics


def tasks_of_step(tasks: Sequence[Task], count: int, step: int, seed: int) -> list[Task]:
    """The tasks of training step ``step`` (from 1): the next ``count`` of endless shuffled passes."""
    positions = range((step - 1) * count, step * count)
    passes = {position // len(tasks) for position in positions}
    orders = {number: generator(seed, "task order", number).permutation(len(tasks)) for number in passes}
    return [tasks[orders[position // len(tasks)][position % len(tasks)]] for position in positions]


class _Clock:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds
