"""A training step, top to bottom in one reading; which algorithm it is makes no difference here.

    collect      groups of rollouts, until enough of them teach something (``select``)
    shape        fit the dictionary to the successes (E-step), take lambda seg/T off their rewards
    judge        the algorithm's advantages, per step
    compare      the engine's log-probabilities with the learner's, before any weight moves
    update       every step of every trajectory is a sample with its own state; the algorithm's loss

What is left out: no value model. Samples that teach nothing are skipped, which changes nothing but the
time when there is no KL term.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skillpress.algorithms.algorithm import Algorithm
from skillpress.algorithms.batch import Floats
from skillpress.interface import Engine
from skillpress.rollout import CollectionStatistics
from skillpress.seeds import generator
from skillpress.training.balance import minibatches
from skillpress.training.batch_metrics import batch_metrics
from skillpress.training.groups import GroupCollector
from skillpress.training.learner import Learner
from skillpress.training.measured import mean_metrics
from skillpress.training.minibatches import updates_of_batch
from skillpress.training.mismatch import MismatchCheck
from skillpress.training.off_policy import correct
from skillpress.training.reward_shaping import RewardShaper
from skillpress.training.samples import Samples, step_samples
from skillpress.trajectory import Step, Trajectory
from skillpress.workers.distributed import Ranks


@dataclass
class TrainingStep:
    """One experiment's training step; everything it needs is handed to it."""

    seed: int
    minibatches: int
    """Optimizer updates per step, where ``minibatch_size`` is 0."""
    minibatch_size: int
    """Samples in an update at most, over all ranks; 0 is no limit."""
    algorithm: Algorithm
    collect: GroupCollector
    shaper: RewardShaper
    learner: Learner
    mismatch: MismatchCheck
    engine: Engine
    ranks: Ranks
    history: dict[int, dict[tuple[str, ...], int]] = field(default_factory=dict)
    """Step to its dictionary's learned phrases and their uses; grows by every step with a success."""

    def __call__(self, step: int) -> dict[str, float]:
        """Training step number ``step`` (from 1); returns its metrics."""
        clock, before = _Clock(), replace(self.collect.collector.statistics)
        collected = self.collect(step)
        seconds = {"rollout": clock.lap()}

        shaped = self.shaper(collected.tasks, collected.trajectories)
        if shaped.dictionary is not None:
            self.history[step] = shaped.dictionary.learned_counts
        batch = collected.batch(self.collect.core_maximum)
        batch = replace(batch, penalty=shaped.penalty, segments=shaped.segments)
        advantages = self.algorithm.advantages(batch, self.ranks.sum)
        seconds["shaping"] = clock.lap()

        self.engine.sleep()
        metrics = self._update(collected.trajectories, advantages, step)
        self.engine.update_weights(self.learner.weights(), step)
        self.engine.wake()
        seconds["update"] = clock.lap()
        return {
            **batch_metrics(collected.played, batch, advantages, self.ranks),
            **shaped.metrics,
            **metrics,
            "scorer_packed": float(self.learner.scorer.name == "packed"),
            **_speed(before, self.collect.collector.statistics, seconds["rollout"]),
            **{f"seconds/{name}": value for name, value in seconds.items()},
        }

    def _update(self, trajectories: Sequence[Trajectory], advantages: Floats, step: int) -> dict[str, float]:
        """The optimizer steps of one batch; means are over the tokens trained (see ``measured.py``).

        A batch in which nothing was sampled (no prompt fitted, nothing was kept) makes no optimizer step.
        """
        steps, sample_advantages = step_samples(trajectories, advantages)
        lengths = np.array([len(s.response_ids) for s in steps], np.int64)
        totals = self.ranks.sum({"tokens": float(lengths.sum()), "sequences": float(len(steps))})
        if not totals["tokens"]:
            return {"tokens_sampled": 0.0, "tokens_trained": 0.0}
        weights = self.algorithm.token_weights(lengths, totals["tokens"], totals["sequences"])
        updates = updates_of_batch(self.minibatches, self.minibatch_size, int(totals["sequences"]))
        samples = Samples(steps, sample_advantages, weights * updates)
        # With a KL term a sample without advantage still pulls towards the reference.
        useful = np.arange(len(steps)) if self.algorithm.loss.kl_coefficient else samples.with_advantage
        random = generator(self.seed, "minibatches", step, 0)
        compared = self.mismatch(_fresh(trajectories, step), step)
        shares = minibatches(samples.select(useful), updates, self.ranks, random)
        corrected: dict[str, float] = {}
        if self.algorithm.importance is not None:
            shares, corrected = correct(shares, self.algorithm.importance, self.learner, self.ranks)
        shares = self.learner.with_reference(shares)
        self.learner.begin_step(step)
        made = [self.learner.update(share) for share in shares]
        trained = self.ranks.sum({"tokens": float(lengths[useful].sum())})
        tokens = {"tokens_sampled": totals["tokens"], "tokens_trained": trained["tokens"]}
        return {**mean_metrics(made), **tokens, **compared, **corrected}


def _fresh(trajectories: Sequence[Trajectory], step: int) -> list[Step]:
    """The responses that were sampled from the weights which the learner has before ``step``."""
    fresh = [trajectory for trajectory in trajectories if trajectory.policy_version == step - 1]
    return [each for trajectory in fresh for each in trajectory.steps if each.response_ids]


def _speed(before: CollectionStatistics, after: CollectionStatistics, seconds: float) -> dict[str, float]:
    """How fast this process collected."""
    moves = after.environment_steps - before.environment_steps
    return {
        "decisions_per_environment_step": (after.decisions - before.decisions) / moves,
        "environment_steps_per_second": moves / seconds,
    }


class _Clock:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds
