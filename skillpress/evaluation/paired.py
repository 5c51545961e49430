"""Two policies on the same tasks: is the difference more than luck?

Both tests are paired by task, because tasks differ in difficulty far more than policies do in
skill. The **bootstrap** resamples tasks and uses every episode of each: it estimates the difference
in Pass@1, its 95% percentile interval and a two-sided p. **McNemar's exact test** needs one yes or
no per task and policy, so it uses the first episode of the first run: no distribution is assumed,
at the price of power. Each is made at several step budgets, the last being the whole episode; and,
where policies vote, once more on the verdicts of the votes instead of the episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.evaluation.budget import BUDGET_POINTS
from skillpress.evaluation.episodes import EvaluationError, episode_table, evaluation_steps
from skillpress.evaluation.success import verdicts_of

RESAMPLES = 10_000


@dataclass(frozen=True)
class PairedTest:
    """``second`` against ``first`` at one step budget."""

    budget: int
    """Steps within which an episode must be won to count."""
    difference: float
    """Success of second - success of first, in [-1, 1]."""
    low: float
    """Lower end of the bootstrap's 95% interval of the difference."""
    high: float
    """Upper end of it."""
    bootstrap_p: float
    """Two-sided."""
    only_first: int
    """Tasks whose first episode only ``first`` won."""
    only_second: int
    """Tasks whose first episode only ``second`` won."""
    mcnemar_p: float
    """Two-sided, exact."""


@dataclass(frozen=True)
class Comparison:
    """Paired tests of two policies."""

    tests: tuple[PairedTest, ...]
    """By increasing budget; the last is T, so its difference is the one in Pass@1."""
    tasks: int
    first_episodes: int
    second_episodes: int
    votes: int = 1
    """k of SC@k."""
    verdicts: PairedTest | None = None
    """The same with a run's verdict on a task for an episode: its difference is the one in SC@k. None
    where k is 1."""


def compare(
    first: pl.DataFrame | pl.LazyFrame,
    second: pl.DataFrame | pl.LazyFrame,
    *,
    max_steps: int,
    seed: int,
    votes: int = 1,
) -> Comparison:
    """Test the rollouts of ``second`` against those of ``first`` at the budgets 3, 5, 10 ... T.

    Args:
        votes: k of SC@k, the episodes of each task in a run.

    Raises:
        EvaluationError: the two did not visit the same tasks; the message names one.
    """
    tables = [episode_table(evaluation_steps(rollouts)) for rollouts in (first, second)]
    tasks = [set(table["task_id"]) for table in tables]
    if different := tasks[0] ^ tasks[1]:
        raise EvaluationError(
            f"task {min(different)} was run by one policy only ({len(different)} such tasks)"
        )
    budgets = [*(budget for budget in BUDGET_POINTS if budget < max_steps), max_steps]
    tests = tuple(_test(tables[0], tables[1], budget, seed) for budget in budgets)
    verdicts = None
    if votes > 1:
        verdicts = _test(_as_episodes(tables[0], votes), _as_episodes(tables[1], votes), max_steps, seed)
    return Comparison(tests, len(tasks[0]), tables[0].height, tables[1].height, votes, verdicts)


def bootstrap(differences: Sequence[float] | NDArray[np.float64], seed: int) -> tuple[float, float, float]:
    """(low, high, p) of the mean of one difference per task, resampling tasks.

    A resample's mean depends only on how often each distinct value was drawn, so those counts are
    drawn (multinomial) instead of the tasks. p is twice the smaller share of resampled means on
    either side of 0, counting the observed sample as one of them (Davison and Hinkley 1997, 4.2.3).
    """
    values, counts = np.unique(np.asarray(differences, dtype=np.float64), return_counts=True)
    total = int(counts.sum())
    draws = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    means = draws @ values / total
    low, high = np.quantile(means, [0.025, 0.975])
    tail = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return float(low), float(high), min(1.0, 2 * (tail + 1) / (RESAMPLES + 1))


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p that a discordant pair is as likely to fall either way; 1 without any."""
    from scipy.stats import binomtest  # takes a second to import, which every stage would pay

    discordant = only_first + only_second
    return float(binomtest(only_first, discordant).pvalue) if discordant else 1.0


def _test(first: pl.DataFrame, second: pl.DataFrame, budget: int, seed: int) -> PairedTest:
    pairs = _per_task(first, budget).join(_per_task(second, budget), on="task_id", suffix="_second")
    difference = (pairs["success_second"] - pairs["success"]).round(12)  # equal shares must tie exactly
    low, high, p = bootstrap(difference.to_numpy(), seed)
    only_first = pairs.filter(pl.col("opening") & ~pl.col("opening_second")).height
    only_second = pairs.filter(~pl.col("opening") & pl.col("opening_second")).height
    return PairedTest(
        budget, float(difference.to_numpy().mean()), low, high, p,
        only_first, only_second, mcnemar(only_first, only_second),
    )  # fmt: skip


def _as_episodes(episodes: pl.DataFrame, votes: int) -> pl.DataFrame:
    """Each vote's verdict as an episode of no steps."""
    verdicts = verdicts_of(episodes, votes).rename({"solved": "won"})
    return verdicts.with_columns(rollout_index=pl.lit(0), length=pl.lit(0))


def _per_task(episodes: pl.DataFrame, budget: int) -> pl.DataFrame:
    """``task_id``, ``success`` (share of its episodes) and ``opening`` (its first episode's)."""
    solved = pl.col("won") & (pl.col("length") <= budget)
    ordered = episodes.sort("group_id", "rollout_index").with_columns(solved=solved)
    return ordered.group_by("task_id").agg(success=pl.col("solved").mean(), opening=pl.col("solved").first())
