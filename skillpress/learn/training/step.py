"""A training step, top to bottom in one reading; which algorithm it is makes no difference here.

    collect      groups of rollouts, until enough of them teach something (``select``); where a lag lets
                 them, those of the next step are played from now on (``ahead.py``)
    replay       groups of the last few steps once more, where there is a buffer of them (``replay.py``)
    shape        fit the dictionary to the successes (E-step), take lambda seg/T off their rewards
    evolve       every few steps, where there is a skill library: what failures add to it
    judge        the algorithm's advantages, per step; before it what each state is worth, where it asks
    compare      the engine's log-probabilities with the learner's, before any weight moves; and describe
                 what the policy makes of whole actions, where they can be listed
    update       every decision of every trajectory is a sample with its own state; the algorithm's loss, and
                 that of lessons from further attempts, where ``experience`` had any played
    leave        of a few steps some groups, for people to read

Samples that teach nothing are skipped, which changes nothing but the time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skillpress.core.engine import Engine
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Step, Trajectory
from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.batch import Floats, Indices
from skillpress.learn.algorithms.scored_tokens import ValueTargets
from skillpress.learn.experience.experience import Experience
from skillpress.learn.training.ahead import Rollouts
from skillpress.learn.training.describing.action_metrics import ActionMetrics
from skillpress.learn.training.describing.batch_metrics import batch_metrics
from skillpress.learn.training.describing.episode_sample import EpisodeSample
from skillpress.learn.training.learner import Learner
from skillpress.learn.training.library_evolution import LibraryEvolution
from skillpress.learn.training.measured import mean_metrics
from skillpress.learn.training.minibatches import minibatches, updates_of_batch
from skillpress.learn.training.mismatch import MismatchCheck
from skillpress.learn.training.off_policy import correct
from skillpress.learn.training.replay import ReplayBuffer
from skillpress.learn.training.reward_shaping import RewardShaper
from skillpress.learn.training.samples import Samples, sample_trajectories, step_samples
from skillpress.learn.training.state_values import targets_of, with_values
from skillpress.play.rollout import CollectionStatistics
from skillpress.play.workers.distributed import Ranks


@dataclass
class TrainingStep:
    """One experiment's training step; everything it needs is handed to it."""

    seed: int
    minibatches: int
    """Optimizer updates per step, where ``minibatch_size`` is 0."""
    minibatch_size: int
    """Samples in an update at most, over all ranks; 0 is no limit."""
    algorithm: Algorithm
    rollouts: Rollouts
    shaper: RewardShaper
    learner: Learner
    mismatch: MismatchCheck
    engine: Engine
    ranks: Ranks
    sample: EpisodeSample
    """What the training leaves of its episodes."""
    actions: ActionMetrics | None = None
    """Describes the policy's actions; None where they cannot be listed."""
    experience: Experience | None = None
    """What further attempts teach; None where there are none."""
    history: dict[int, dict[tuple[str, ...], int]] = field(default_factory=dict)
    """Step to its dictionary's learned phrases and their uses; grows by every step with a success."""
    replay: ReplayBuffer | None = None
    """Where groups of earlier steps are drawn from; None learns from new ones alone."""
    evolution: LibraryEvolution | None = None
    """The library whose skills the rollouts are shown; None where there is none."""

    def __call__(self, step: int, ahead: bool = False) -> dict[str, float]:
        """Training step number ``step`` (from 1); returns its metrics.

        Args:
            ahead: play the rollouts of the next step meanwhile; the next call must be that step.
        """
        clock, done = _Clock(), replace(self.rollouts.statistics)
        new = collected = self.rollouts(step)
        if ahead:
            self.rollouts.begin(step + 1)
        replayed: dict[str, float] = {}
        if self.replay is not None:
            collected, replayed = self.replay(step, new)
        seconds = {"rollout": clock.lap()}

        shaped = self.shaper(collected.tasks, collected.trajectories, collected.new)
        if shaped.dictionary is not None:
            self.history[step] = shaped.dictionary.learned_counts
        evolved = self.evolution(step, new, shaped.dictionary) if self.evolution is not None else {}
        batch = collected.batch(self.rollouts.collect.core_maximum)
        batch = replace(batch, penalty=shaped.penalty, segments=shaped.segments, charges=shaped.charges)
        seconds["shaping"] = clock.lap()

        if not ahead:  # an engine that plays meanwhile keeps what it needs
            self.engine.sleep()
        if self.algorithm.parameters.needs_values:
            batch = with_values(batch, collected.trajectories, self.learner)
        advantages = self.algorithm.advantages(batch, self.ranks.sum)
        targets = targets_of(batch, collected.trajectories, self.algorithm, self.ranks.sum)
        metrics = self._update(collected.trajectories, advantages, step, targets, collected.further)
        seconds["update"] = clock.lap()
        self.rollouts.finish()
        seconds["rollout"] += clock.lap()
        self.engine.update_weights(self.learner.weights(), step)
        if not ahead:
            self.engine.wake()
        seconds["update"] += clock.lap()
        self.sample.take(step, collected, batch, advantages)
        return {
            **batch_metrics(collected.played, batch, advantages, self.ranks, collected.replayed),
            **self.algorithm.describe(batch, self.ranks.sum),
            **replayed,
            **shaped.metrics,
            **evolved,
            **metrics,
            **(self.experience.metrics(collected.further, self.ranks.sum) if self.experience else {}),
            "scorer_packed": float(self.learner.scorer.name == "packed"),
            **collected.speed,
            **{f"seconds/{name}": value for name, value in seconds.items()},
            **_time_shares(seconds, self.rollouts.statistics - done),
        }

    def _update(
        self,
        trajectories: Sequence[Trajectory],
        advantages: Floats,
        step: int,
        targets: ValueTargets[Floats] | None = None,
        further: Sequence[Trajectory] = (),
    ) -> dict[str, float]:
        """The optimizer steps of one batch; means are over the tokens trained (see ``measured.py``).

        A batch in which nothing was sampled (no prompt fitted, nothing was kept) makes no optimizer step.

        Args:
            targets: of the decisions at which something was sampled; None where there are no values.
        """
        steps, sample_advantages = step_samples(trajectories, advantages)
        lengths = np.array([len(s.response_ids) for s in steps], np.int64)
        totals = self.ranks.sum(
            {"tokens": float(lengths.sum()), "sequences": float(len(steps)), "age": _age(steps, step)}
        )
        if not totals["tokens"]:
            return {"tokens_sampled": 0.0, "tokens_trained": 0.0}
        weights = self.algorithm.token_weights(lengths, totals["tokens"], totals["sequences"])
        updates = updates_of_batch(self.minibatches, self.minibatch_size, int(totals["sequences"]))
        samples = Samples(
            steps=steps,
            advantages=sample_advantages,
            weights=weights * updates,
            targets=None if targets is None else replace(targets, weights=targets.weights * updates),
            trajectory=self._numbers(trajectories) if self.algorithm.whole_trajectories else None,
        )
        useful = np.arange(len(steps)) if self.algorithm.teaches_everywhere else samples.with_advantage
        random = generator(self.seed, "minibatches", step, 0)
        compared = self.mismatch(_fresh(trajectories, step), step)
        described = {} if self.actions is None else self.actions(trajectories, step)
        shares = minibatches(samples.select(useful), updates, self.ranks, random)
        corrected: dict[str, float] = {}
        if self.algorithm.importance is not None:
            shares, corrected = correct(shares, self.algorithm.importance, self.learner, self.ranks)
        shares = self.learner.with_reference(shares)
        lessons = self._lessons(further, totals, updates, step)
        self.learner.begin_step(step)
        made = [self.learner.update(*both) for both in zip(shares, lessons, strict=True)]
        trained = self.ranks.sum({"tokens": float(lengths[useful].sum())})
        tokens = {"tokens_sampled": totals["tokens"], "tokens_trained": trained["tokens"]}
        staleness = {"staleness": totals["age"] / totals["tokens"]}
        return {**mean_metrics(made), **tokens, **staleness, **compared, **described, **corrected}

    def _lessons(
        self, further: Sequence[Trajectory], totals: dict[str, float], updates: int, step: int
    ) -> Sequence[Samples | None]:
        """What each update learns of further attempts; one of its tokens weighs what a rollout's does."""
        if self.experience is None:
            return [None] * updates
        steps = self.experience.lessons(further)
        lengths = np.array([len(each.response_ids) for each in steps], np.int64)
        weights = self.algorithm.token_weights(lengths, totals["tokens"], totals["sequences"])
        samples = Samples(steps=steps, advantages=np.ones(len(steps)), weights=weights * updates)
        return minibatches(samples, updates, self.ranks, generator(self.seed, "lessons", step))

    def _numbers(self, trajectories: Sequence[Trajectory]) -> Indices:
        """[samples] the number of each one's trajectory among those of all ranks."""
        return sample_trajectories(trajectories) * self.ranks.size + self.ranks.rank


def _fresh(trajectories: Sequence[Trajectory], step: int) -> list[Step]:
    """The responses that were sampled from the weights which the learner has before ``step``."""
    fresh = [trajectory for trajectory in trajectories if trajectory.policy_version == step - 1]
    return [each for trajectory in fresh for each in trajectory.decisions if each.response_ids]


def _age(steps: Sequence[Step], step: int) -> float:
    """The sum over sampled tokens of how many training steps their weights are behind the learner's."""
    spans = [span for each in steps for span in each.weight_spans]
    return float(sum((span.end - span.start) * (step - 1 - span.version) for span in spans))


def _time_shares(seconds: dict[str, float], played: CollectionStatistics) -> dict[str, float]:
    """Who was at work for which share of a step's time.

    The engine works while a decision is asked of it, and waits for ``environments`` while episodes are played
    and none is. Without a lag a GPU that both share waits for what ``engine`` and ``learner`` leave; with one
    they overlap, since both work at once.

    Args:
        seconds: of the step's parts.
        played: within the step, for its own updates or the next step's.
    """
    total = sum(seconds.values())
    shares = {
        "engine": played.agent_seconds / total,
        "environments": (played.seconds - played.agent_seconds) / total,
        "learner": seconds["update"] / total,
    }
    return {f"time_share/{name}": share for name, share in shares.items()}


class _Clock:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        return seconds
