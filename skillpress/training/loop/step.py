"""A training step, from top to bottom; it is the same for every algorithm.

    collect      groups of rollouts, until enough of them teach something (``select``); with a lag, later
                 steps' groups are played from now on (``ahead.py``)
    replay       groups of the last few steps once more, if there is a buffer (``replay.py``)
    shape        fit the dictionary to the successes (E-step), and subtract lambda seg/T from their rewards
    evolve       every few steps, if there is a skill library: add skills from failures
    judge        the values of states if the algorithm asks for them, then its advantages per step
    describe     the policy's probabilities of whole actions, if these can be listed
    update       every decision of every trajectory is a sample with its own state; the loss is the
                 algorithm's, plus that of lessons if ``experience`` had further attempts played. Before any
                 weight changes, the first update compares the engine's log-probabilities with the learner's
    leave        some groups of a few steps, for people to read

Samples that teach nothing are skipped; this changes only the time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skillpress.core.columns import by_token
from skillpress.core.engine import Engine
from skillpress.core.errors import UserError
from skillpress.core.logprobs import Logprobs
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Trajectory
from skillpress.rollouts.collection import CollectionStatistics
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.history import PhraseHistory
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import FURTHER, LEFT_OUT, TEACHES, Batch, Indices
from skillpress.training.experience.experience import Experience
from skillpress.training.loop.ahead import RolloutSource
from skillpress.training.loop.continuing import TOO_OLD
from skillpress.training.loop.describing.action_metrics import ActionMetrics
from skillpress.training.loop.describing.batch_metrics import batch_metrics
from skillpress.training.loop.describing.episode_sample import EpisodeSample
from skillpress.training.loop.keeping.checkpoint import Stateful
from skillpress.training.loop.kl_share import kl_factors
from skillpress.training.loop.learner import Learner
from skillpress.training.loop.lessons import lessons_of
from skillpress.training.loop.library_evolution import LibraryEvolution
from skillpress.training.loop.log_ratios import LogRatios, importance_metrics, proximal_ratios
from skillpress.training.loop.measured import Measured, mean_metrics
from skillpress.training.loop.minibatches import minibatches, updates_of_batch, with_advantage
from skillpress.training.loop.mismatch import MismatchCheck
from skillpress.training.loop.model_pass import sampled, sampled_steps
from skillpress.training.loop.replay import ReplayBuffer
from skillpress.training.loop.reward_shaping import RewardShaper


class StaleWeightsError(UserError):
    """The engine samples from other weights than ``training.lag`` allows."""


@dataclass
class TrainingStep:
    """One experiment's training step; all its parts are arguments."""

    seed: int
    minibatches: int
    """Number of optimizer updates per step if ``minibatch_size`` is 0."""
    minibatch_size: int
    """The most samples of an update, over all ranks; 0 means no limit."""
    algorithm: Algorithm
    rollouts: RolloutSource
    shaper: RewardShaper
    learner: Learner
    mismatch: MismatchCheck
    engine: Engine
    ranks: Ranks
    sample: EpisodeSample
    """The sample of episodes that the training leaves."""
    actions: ActionMetrics | None = None
    """Describes the policy's actions; None if they cannot be listed."""
    experience: Experience | None = None
    """The method that asks for further attempts; None without such a method."""
    history: PhraseHistory = field(default_factory=PhraseHistory)
    """The learned phrases of every step's dictionaries."""
    replay: ReplayBuffer | None = None
    """The buffer with groups of earlier steps; None learns from new groups alone."""
    lag: int = 0
    """The largest age, in training steps, of the weights that drew a token of new rollouts."""
    evolution: LibraryEvolution | None = None
    """The evolution of the library whose skills prompts show; None without a library."""

    @property
    def stateful(self) -> dict[str, Stateful]:
        """The parts with a state besides the weights, by name."""
        parts: dict[str, Stateful] = {"corpus": self.shaper.corpus, "history": self.history}
        return parts if self.evolution is None else {**parts, "library": self.evolution}

    def __call__(self, step: int, until: int = 0) -> dict[str, float]:
        """Run training step number ``step`` (from 1); returns its metrics.

        Args:
            until: also begin the rollouts of the steps up to this one; the next calls must then be those
                steps.
        """
        clock, done = _Clock(), replace(self.rollouts.statistics)
        played, told = self.rollouts(step)
        drawn = played.played_as(TEACHES, FURTHER)
        refuse_other_ages(drawn, step, self.lag, self.engine, self.ranks)
        # As early as possible: the engine plays while this process fits dictionaries and updates.
        for following in range(self.rollouts.begun + 1, until + 1):
            self.rollouts.begin(following)
        ahead = self.rollouts.begun > step
        new = batch = played.teaching
        replayed: dict[str, float] = {}
        if self.replay is not None:
            played, replayed = self.replay(step, played)
            batch = played.teaching
        seconds = {"rollout": clock.lap()}

        shaped = self.shaper(batch.tasks or (), batch.episodes, batch.new)
        if shaped.dictionaries:
            self.history.record(step, shaped.dictionaries.values())
        evolved = self.evolution(step, new, shaped.dictionary) if self.evolution is not None else {}
        batch = replace(batch, penalty=shaped.penalty, segments=shaped.segments, charges=shaped.charges)
        rows = sampled(batch)
        seconds["shaping"] = clock.lap()

        if not ahead:  # an engine that is playing keeps its memory
            self.engine.sleep()
        batch = self.learner.judge(batch, rows)
        advantages = self.algorithm.advantages(batch, self.ranks.sum)
        batch = replace(batch, advantages=by_token(advantages, batch.tokens), age=_ages(batch, step))
        further = played.played_as(FURTHER)
        metrics = self._update(step, batch, batch.cut(rows), further)
        seconds["update"] = clock.lap()
        self.rollouts.finish()
        seconds["rollout"] += clock.lap()
        # After ``finish``: in lock-step a batch is played by one policy to its end.
        self.rollouts.update_weights(self.learner.weights(), step)
        if not ahead:
            self.engine.wake()
        seconds["update"] += clock.lap()
        self.sample.take(step, played, batch, advantages)
        return {
            **batch_metrics(played.played_as(TEACHES, LEFT_OUT), batch, advantages, self.ranks),
            **self.algorithm.describe(batch, self.ranks.sum),
            **replayed,
            **shaped.metrics,
            **evolved,
            **metrics,
            **(self.experience.metrics(further, self.ranks.sum) if self.experience else {}),
            "scorer_packed": float(self.learner.scorer.name == "packed"),
            **(self.ranks.sum({TOO_OLD: told.pop(TOO_OLD)}) if TOO_OLD in told else {}),
            **told,
            **{f"seconds/{name}": value for name, value in seconds.items()},
            **_time_shares(seconds, self.rollouts.statistics - done),
        }

    def _update(
        self, step: int, batch: Batch, samples: Batch, further: Sequence[Trajectory]
    ) -> dict[str, float]:
        """Run the optimizer steps of one batch; means are over the trained tokens (see ``measured.py``).

        If nothing was sampled (no prompt fitted, or no trajectory was kept), there is no optimizer step.

        Args:
            samples: the batch's steps at which something was sampled, before they have weights.
            further: further attempts, for their lessons.
        """
        lengths, (age, oldest) = samples.tokens, _token_ages(batch.episodes, step)
        totals = self.ranks.sum(
            {"tokens": float(lengths.sum()), "sequences": float(len(samples)), "age": age}
        )
        (oldest,) = self.ranks.maximum([oldest])
        if not totals["tokens"]:
            return {"tokens_sampled": 0.0, "tokens_trained": 0.0}
        longest, whole = batch.longest_response, self.algorithm.whole_trajectories
        updates = updates_of_batch(self.minibatches, self.minibatch_size, int(totals["sequences"]))
        samples = self._drawn_for_kl(self._weighed(samples, totals, updates, longest), step)
        useful = np.arange(len(samples))
        if not self.algorithm.teaches_everywhere:
            useful = with_advantage(samples, whole)
        # Without the rank: all ranks must draw the same minibatches.
        random = generator(self.seed, "minibatches", step, 0)
        # Before the updates, so that it describes the policy that played.
        described = {} if self.actions is None else self.actions(batch.episodes, step)
        parts = minibatches(samples.cut(useful), updates, self.ranks, random, whole)
        shares, importance = self.learner.prepare(parts), self.algorithm.importance_weights
        ratios = [] if importance is None else proximal_ratios(shares[1:])
        lessons = self._lessons(further, totals, updates, longest, step)
        self.learner.begin_step(step)
        compared: dict[str, float] = {}

        def compare(samples: Batch, logprobs: Logprobs) -> None:
            compared.update(self.mismatch(samples, logprobs, step))
            # The other updates' ratios are in ``ratios`` already, from ``proximal_ratios``.
            if not made:
                ratios.append(LogRatios.of(samples, logprobs))

        made: list[Measured] = []
        for share, lesson in zip(shares, lessons, strict=True):
            # An update without a pass changes no weight, so the next one can still be compared.
            unchanged = not any(update.optimized for update in made)
            made.append(self.learner.update(share, lesson, compare if unchanged else None))
        corrected = {} if importance is None else importance_metrics(ratios, importance, self.ranks)
        trained = self.ranks.sum({"tokens": float(lengths[useful].sum())})
        tokens = {"tokens_sampled": totals["tokens"], "tokens_trained": trained["tokens"]}
        staleness = {"staleness": totals["age"] / totals["tokens"], "staleness_oldest": float(oldest)}
        return {**mean_metrics(made), **tokens, **staleness, **compared, **described, **corrected}

    def _weighed(self, samples: Batch, totals: dict[str, float], updates: int, longest: int) -> Batch:
        """The samples with weights that sum to 1 over each of ``updates`` updates of about one size."""
        weights = self.algorithm.token_weights(samples.tokens, totals["tokens"], totals["sequences"], longest)
        of_values = samples.value_weights
        if of_values is not None:
            of_values = of_values * updates
        # Weights sum to 1 over the step, so those of one of ``updates`` equal parts sum to 1 / ``updates``.
        return replace(samples, weights=weights * updates, value_weights=of_values)

    def _drawn_for_kl(self, samples: Batch, step: int) -> Batch:
        """The samples with their factors in the KL term, if the reference scores a share of them."""
        share = self.algorithm.kl_share
        if not self.algorithm.kl_coefficient or share == 1:
            return samples
        # With the rank: each rank draws among its own units.
        random = generator(self.seed, "kl share", step, self.ranks.rank)
        return replace(samples, kl_factors=kl_factors(samples.pairs, share, random))

    def _lessons(
        self, further: Sequence[Trajectory], totals: dict[str, float], updates: int, longest: int, step: int
    ) -> Sequence[Batch | None]:
        """The lessons of each update; their tokens have the same weight as a rollout's."""
        if self.experience is None:
            return [None] * updates
        lessons = lessons_of(self.experience.lessons(further))
        lessons = self._weighed(lessons, totals, updates, longest)
        return minibatches(lessons, updates, self.ranks, generator(self.seed, "lessons", step))


def _ages(batch: Batch, step: int) -> Indices:
    """[steps] training steps by which the oldest weights that drew a token of each are behind those before
    ``step``."""
    versions = [
        min((span.version for span in decision.weight_spans), default=each.policy_version)
        for each in batch.episodes
        for decision in each.decisions
    ]
    ages: Indices = step - 1 - np.array(versions, np.int64)
    return ages


def refuse_other_ages(
    trajectories: Sequence[Trajectory], step: int, lag: int, engine: Engine, ranks: Ranks
) -> None:
    """Refuse new rollouts whose weights are more than ``lag`` steps old, or newer than the learner's.

    Raises:
        StaleWeightsError: an engine gave such rollouts; raised on every rank.
    """
    versions = [span.version for each in sampled_steps(trajectories) for span in each.weight_spans]
    oldest, ahead = ranks.maximum(
        [max((step - 1 - version for version in versions), default=0), max(versions, default=0) - step + 1]
    )
    if oldest <= lag and ahead <= 0:
        return
    kind = type(engine)
    raise StaleWeightsError(
        f"training.lag is {lag}, and in step {step} the engine {kind.__module__}:{kind.__qualname__} "
        + (
            f"says that tokens are from weights that are {oldest:g} steps old"
            if oldest > lag
            else f"says that tokens are from weights {ahead:g} steps after the learner's"
        )
        + "; its update_weights must make it sample from the given weights, and weight_spans must have their "
        "version"
    )


def _token_ages(trajectories: Sequence[Trajectory], step: int) -> tuple[float, int]:
    """The sum and the largest, over sampled tokens, of the number of training steps by which their weights
    are behind the learner's."""
    spans = [span for each in sampled_steps(trajectories) for span in each.weight_spans]
    total = sum((span.end - span.start) * (step - 1 - span.version) for span in spans)
    return float(total), max((step - 1 - span.version for span in spans), default=0)


def _time_shares(seconds: dict[str, float], played: CollectionStatistics) -> dict[str, float]:
    """The shares of a step's time during which engine, environments and learner worked.

    The engine works while it has requests for decisions. While episodes are played without such a request, it
    waits for ``environments``. Without a lag, a GPU shared by engine and learner is idle for the rest, 1 -
    ``engine`` - ``learner``; with a lag both work at once, so their shares overlap.

    Args:
        seconds: duration of each of the step's parts.
        played: statistics of play within the step, for its own updates or the next step's.
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
