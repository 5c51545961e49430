"""Every training by itself, against the start of its seed and against a random player, on the same puzzles.

This holds for these trained models only: it says that other puzzles would show the rise, not that other
trainings would. The plan's claims, over seeds, say the latter. Each played a puzzle once, so McNemar's exact
test applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from docs.words import p_value, percent, points, table
from skillpress.evaluation.statistics.bootstrap import over_tasks
from skillpress.evaluation.statistics.paired import mcnemar
from skillpress.evaluation.study.holm import holm
from skillpress.pipeline.files import EXPLORER, TRAINED
from studies.language_model.names import BENCHMARK, NAMES, QUESTION
from studies.statistics.contrasts import LEVEL
from studies.study.results import Results

ABOVE, BELOW, EQUAL = "above", "below", "not told apart"


@dataclass(frozen=True)
class Training:
    """A training and the start of its seed, puzzle by puzzle."""

    method: str
    seed: int
    before: float
    """Success of the start, which the plan's method ``imitation`` played."""
    after: float
    low: float
    """Lower end of the 95% interval of the difference, over puzzles."""
    high: float
    only_start: int
    """Puzzles that only the start won."""
    only_trained: int


def trainings(results: Results) -> list[Training]:
    """The recorded trainings whose start is recorded too, by method and seed."""
    outcome = results.plan.benchmarks[BENCHMARK].outcome
    found = []
    for claim in results.plan.claims(QUESTION):
        if claim.second not in NAMES or claim.first in NAMES:
            continue
        starts, trained = (results.runs.get((BENCHMARK, name), {}) for name in (claim.first, claim.second))
        seeds = sorted(starts.keys() & trained.keys())
        for seed, (one, other) in zip(seeds, results.pairs(claim, outcome), strict=True):
            found.append(_training(claim.second, seed, one.join(other, on="task_id", suffix="_after")))
    return found


def _training(method: str, seed: int, puzzles: pl.DataFrame) -> Training:
    before, after = puzzles["score"].to_numpy(), puzzles["score_after"].to_numpy()
    low, high, _ = over_tasks(after - before, seed)
    return Training(
        method=method,
        seed=seed,
        before=float(before.mean()),
        after=float(after.mean()),
        low=low,
        high=high,
        only_start=int((before > after).sum()),
        only_trained=int((after > before).sum()),
    )


@dataclass(frozen=True)
class AgainstRandom:
    """A training and the random explorer of its run, puzzle by puzzle."""

    method: str
    seed: int
    explorer: float
    """Success of the explorer."""
    trained: float
    low: float
    """Lower end of the 95% interval of the difference, over puzzles."""
    high: float
    p: float
    """McNemar's exact test, corrected over the planned trainings."""

    @property
    def verdict(self) -> str:
        """``above``, ``below`` or ``not told apart``."""
        if self.p >= LEVEL:
            return EQUAL
        return ABOVE if self.trained > self.explorer else BELOW


def against_random(results: Results) -> list[AgainstRandom]:
    """The recorded trainings, by method and seed."""
    outcome = results.plan.benchmarks[BENCHMARK].outcome
    found, values = [], []
    for method in NAMES:
        for seed, run in sorted(results.runs.get((BENCHMARK, method), {}).items()):
            random, trained = (results.scores(run, policy, outcome) for policy in (EXPLORER, TRAINED))
            both = random.join(trained, on="task_id", suffix="_trained")
            difference = (both["score_trained"] - both["score"]).to_numpy()
            low, high, _ = over_tasks(difference, seed)
            levels = float(both["score"].to_numpy().mean()), float(both["score_trained"].to_numpy().mean())
            found.append((method, seed, *levels, low, high))
            values.append(mcnemar(int((difference < 0).sum()), int((difference > 0).sum())))
    together = zip(found, corrected(values, _planned(results)), strict=True)
    return [AgainstRandom(*one, p=p) for one, p in together]


def each_against_random(results: Results) -> Iterator[str]:
    """A row per training."""
    heads = (
        "training",
        "random explorer",
        "trained",
        "difference, points (95%, other puzzles)",
        "p, corrected",
        "",
    )
    rows = [
        (
            f"`{one.method}`, seed {one.seed}",
            percent(one.explorer),
            percent(one.trained),
            points(one.trained - one.explorer, one.low, one.high),
            p_value(one.p),
            one.verdict,
        )
        for one in against_random(results)
    ]
    yield from table(heads, rows)


def _planned(results: Results) -> int:
    return len(NAMES) * len(results.plan.benchmarks[BENCHMARK].seeds)


def each_training(results: Results) -> Iterator[str]:
    """A row per training; p is corrected over all that the plan asks for."""
    found = trainings(results)
    values = corrected([mcnemar(one.only_start, one.only_trained) for one in found], _planned(results))
    heads = (
        "training",
        "start",
        "trained",
        "difference, points (95%, other puzzles)",
        "won by the start alone, by the trained alone",
        "p, corrected",
    )
    rows = [
        (
            f"`{one.method}`, seed {one.seed}",
            percent(one.before),
            percent(one.after),
            points(one.after - one.before, one.low, one.high),
            f"{one.only_start}, {one.only_trained}",
            p_value(p),
        )
        for one, p in zip(found, values, strict=True)
    ]
    yield from table(heads, rows)


def corrected(values: Sequence[float], planned: int) -> list[float]:
    """Holm's correction over the planned trainings: a missing one counts as 1, so it makes nothing laxer."""
    return holm([*values, *[1.0] * (planned - len(values))])[: len(values)]
