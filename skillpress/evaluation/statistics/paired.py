"""Two policies on the same tasks: is the difference more than chance?

Every test is paired by task, because tasks differ in difficulty far more than policies do in skill. There are
two questions, and each test says which one it answers.

*For these trained policies*: would other tasks of the same kind show the difference? The test **over tasks**
resamples tasks, with every episode of each, or uses Student's t if they are few (``bootstrap``). A task that
several seeds played is one task. **McNemar's exact test** needs one yes or no per task and policy, so it uses
the first episode of the first run. It assumes no distribution, at the price of power. It is made for a single
seed only: several seeds have several first episodes of a task, or tasks that are not a sample of one
policy's.

*For the methods*: would other trainings show the difference? That takes several seeds: ``trainings``.

Each test is made at several step budgets, the last being the whole episode. If policies vote, it is made
again on the verdicts of the votes instead of the episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from skillpress.core.distributions import sign_test
from skillpress.evaluation.statistics.bootstrap import over_tasks
from skillpress.evaluation.statistics.budget import BUDGET_POINTS
from skillpress.evaluation.statistics.episodes import RUN_KEY, EvaluationError, EvaluationSteps, episode_table
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.sign_flips import MOST_FLIPPED, sign_flips_of_seeds
from skillpress.evaluation.statistics.success import verdicts_of
from skillpress.evaluation.statistics.trainings import OverTrainings, over_trainings

Pair = tuple[pl.DataFrame, pl.DataFrame]
"""The episodes of the first policy and of the second, trained with one seed."""


@dataclass(frozen=True)
class PairedTest:
    """``second`` compared with ``first`` at one step budget."""

    budget: int
    """Steps within which an episode must be won to count."""
    difference: float
    """Success of second - success of first, in [-1, 1]; the mean over seeds."""
    per_seed: tuple[float, ...]
    """The difference of each seed's pair."""
    low: float
    """Lower end of the 95% interval of the difference over tasks, for these trained policies."""
    high: float
    """Upper end of the interval."""
    bootstrap_p: float
    """Two-sided, from the bootstrap over tasks, or from the test that replaces it if tasks are few."""
    only_first: int | None = None
    """Tasks whose first episode only ``first`` won; None if several seeds are tested."""
    only_second: int | None = None
    """Tasks whose first episode only ``second`` won."""
    mcnemar_p: float | None = None
    """Two-sided, exact, for these trained policies."""
    trainings: OverTrainings | None = None
    """The result for other trainings of the same methods; None for a single seed, or if nothing varies."""
    signs_p: float | None = None
    """Two-sided, exact, of the signs of ``per_seed``: holds also if some trainings diverge. None for a single
    seed or more than ``MOST_FLIPPED``."""


@dataclass(frozen=True)
class Comparison:
    """Paired tests of two policies, or of two methods by several trainings of each."""

    tests: tuple[PairedTest, ...]
    """Tests by increasing budget; the last budget is T, so its difference is the one in Pass@1."""
    tasks: int
    """Number of different tasks; a task that several seeds played counts once."""
    first_episodes: int
    second_episodes: int
    votes: int = 1
    """k in SC@k."""
    verdicts: PairedTest | None = None
    """The test on a run's verdicts instead of episodes, as the difference in SC@k; None if k is 1."""
    seeds: int = 1
    """Number of trainings of each method."""


def compare(
    first: EvaluationSteps, second: EvaluationSteps, *, max_steps: int, seed: int, votes: int = 1
) -> Comparison:
    """Test the rollouts of one policy against those of another at the budgets 3, 5, 10 ... T.

    Args:
        max_steps: T, the longest an episode may be.
        seed: the seed of the bootstrap.
        votes: k in SC@k, the episodes of each task in a run.

    Raises:
        EvaluationError: the two did not visit the same tasks; the message names one of them.
    """
    return compare_trainings([first], [second], max_steps=max_steps, seed=seed, votes=votes)


def compare_trainings(
    first: Sequence[EvaluationSteps],
    second: Sequence[EvaluationSteps],
    *,
    max_steps: int,
    seed: int,
    votes: int = 1,
) -> Comparison:
    """Test two methods, each trained once with every seed; otherwise like :func:`compare`.

    Raises:
        EvaluationError: within a seed the two did not visit the same tasks; the message names one.
        ValueError: there is no seed, or one method has more seeds.
    """
    if not first or len(first) != len(second):
        raise ValueError(f"trainings must come in pairs, got {len(first)} and {len(second)}")
    tables = [(episode_table(one), episode_table(other)) for one, other in zip(first, second, strict=True)]
    for one, other in tables:
        if different := set(one["task_id"]) ^ set(other["task_id"]):
            raise EvaluationError(
                f"task {min(different)} was run by one policy only ({len(different)} such tasks)"
            )
    budgets = [*(budget for budget in BUDGET_POINTS if budget < max_steps), max_steps]
    tests = tuple(_test(tables, budget, seed) for budget in budgets)
    verdicts = None
    if votes > 1:
        of_votes = [(_as_episodes(one, votes), _as_episodes(other, votes)) for one, other in tables]
        verdicts = _test(of_votes, max_steps, seed)
    return Comparison(
        tests=tests,
        tasks=len({task for one, _ in tables for task in one["task_id"]}),
        first_episodes=sum(one.height for one, _ in tables),
        second_episodes=sum(other.height for _, other in tables),
        votes=votes,
        verdicts=verdicts,
        seeds=len(tables),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p for equal chances of both sides of a discordant pair; 1 without such pairs."""
    return sign_test(only_first, only_first + only_second)


def _test(tables: Sequence[Pair], budget: int, seed: int) -> PairedTest:
    pairs = [
        _per_task(one, budget).join(_per_task(other, budget), on="task_id", suffix="_second")
        for one, other in tables
    ]
    difference = (pl.col("success_second") - pl.col("success")).round(12)  # equal shares must tie exactly
    scores = Scores.of([pair.select("task_id", score=difference) for pair in pairs])
    low, high, p = over_tasks(scores.per_task(), seed)
    only_first = only_second = mcnemar_p = None
    if len(pairs) == 1:
        only_first = pairs[0].filter(pl.col("opening") & ~pl.col("opening_second")).height
        only_second = pairs[0].filter(~pl.col("opening") & pl.col("opening_second")).height
        mcnemar_p = mcnemar(only_first, only_second)
    per_seed = scores.seed_means().tolist()
    return PairedTest(
        budget=budget,
        difference=scores.mean(),
        per_seed=tuple(per_seed),
        low=low,
        high=high,
        bootstrap_p=p,
        only_first=only_first,
        only_second=only_second,
        mcnemar_p=mcnemar_p,
        trainings=over_trainings(scores),
        signs_p=sign_flips_of_seeds(per_seed) if 1 < len(per_seed) <= MOST_FLIPPED else None,
    )


def _as_episodes(episodes: pl.DataFrame, votes: int) -> pl.DataFrame:
    """Each vote's verdict as an episode without steps."""
    verdicts = verdicts_of(episodes, votes).rename({"solved": "won"})
    return verdicts.with_columns(rollout_index=pl.lit(0), length=pl.lit(0))


def _per_task(episodes: pl.DataFrame, budget: int) -> pl.DataFrame:
    """``task_id``, ``success`` (share of its episodes) and ``opening`` (success of its first episode)."""
    solved = pl.col("won") & (pl.col("length") <= budget)
    ordered = episodes.sort(*RUN_KEY, "rollout_index").with_columns(solved=solved)
    return ordered.group_by("task_id").agg(success=pl.col("solved").mean(), opening=pl.col("solved").first())
