"""Methods against each other, over the experiments (method x seed) that were run of them.

Tasks depend on the seed, so methods are paired within a seed, and the pairs of all seeds are pooled:
``3/54=1,2,28`` is task 54=1,2,28 of seed 3. The first method is the one that the others are tested
against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import polars as pl

from skillpress.evaluation import Comparison, compare
from skillpress.evaluation.budget import success_against_budget
from skillpress.evaluation.episodes import episode_table, evaluation_steps
from skillpress.evaluation.success import pass_at_1
from skillpress.params import Params, load_params
from skillpress.report import ReportData, render_report
from skillpress.trajectory import scan_rollouts
from tasks.data import EVALUATION_ROLLOUTS, RESULTS
from tasks.paper_tables import where_they_fit
from tasks.results import BASELINES, TRAINED, curves, policy_results
from tasks.runs import read_run


@dataclass(frozen=True)
class Experiment:
    """One finished experiment."""

    method: str
    seed: int
    folder: Path
    """Its workspace."""

    @property
    def params(self) -> Params:
        """Its resolved parameters."""
        return load_params(self.folder / "params.yaml")


@dataclass(frozen=True)
class MethodRow:
    """A line of the comparison's table; shares in [0, 1]."""

    method: str
    seeds: int
    pass_at_1: float
    std_over_seeds: float | None
    """None with a single seed."""
    low: float
    """Wilson's 95% interval over the tasks of all seeds."""
    high: float
    budget_area: float
    checkpoint: str
    """The rule by which its weights were chosen (``training.keep``); empty where none was trained."""


def pooled(experiments: Sequence[Experiment], policy: str) -> pl.LazyFrame:
    """The evaluation rollouts of one policy in several experiments, tasks named by seed."""
    return pl.concat(
        scan_rollouts(experiment.folder / EVALUATION_ROLLOUTS)
        .filter(pl.col("group_id").str.starts_with(f"{policy}/"))
        .with_columns(pl.format(f"{experiment.seed}/{{}}", "task_id").alias("task_id"))
        for experiment in experiments
    )


def table(experiments: Sequence[Experiment]) -> list[MethodRow]:
    """The random explorer, the imitation start, then every method in the order given."""
    groups = by_method(experiments)
    first = next(iter(groups.values()))
    rows = [row(label, first, policy) for policy, label in BASELINES.items()]
    return rows + [row(method, group, TRAINED) for method, group in groups.items()]


def row(label: str, experiments: Sequence[Experiment], policy: str) -> MethodRow:
    """One policy's line over its experiments."""
    episodes = episode_table(evaluation_steps(pooled(experiments, policy)))
    rate = pass_at_1(episodes)
    seeds = episodes.group_by(pl.col("task_id").str.split("/").list.first()).agg(pl.col("won").mean())
    longest = experiments[0].params.environment.max_steps
    return MethodRow(
        label,
        len(experiments),
        mean(seeds["won"].to_list()),
        stdev(seeds["won"].to_list()) if len(seeds) > 1 else None,
        rate.low,
        rate.high,
        success_against_budget(episodes, longest).area,
        ", ".join(sorted({e.params.training.keep for e in experiments})) if policy == TRAINED else "",
    )


def paired_tests(experiments: Sequence[Experiment]) -> dict[str, Comparison]:
    """Every method against the first, on the seeds that both have finished."""
    groups = by_method(experiments)
    (reference, base), *others = groups.items()
    tests = {}
    for method, group in others:
        shared = {e.seed for e in base} & {e.seed for e in group}
        if shared:
            first, second = (pooled([e for e in g if e.seed in shared], TRAINED) for g in (base, group))
            params = base[0].params
            tests[f"{method} against {reference}"] = compare(
                first, second, max_steps=params.environment.max_steps, seed=0, votes=params.evaluation.votes
            )
    return tests


def page(
    experiments: Sequence[Experiment], tests: Mapping[str, Comparison], versions: Mapping[str, str]
) -> str:
    """The comparison as a report of its own; parameters are those of the first experiment."""
    tables, notes = where_they_fit([read_run(experiment.folder) for experiment in experiments])
    results = []
    shown: set[tuple[str, int]] = set()
    for experiment in experiments:
        for result in policy_results(experiment.folder / RESULTS, experiment.method, experiment.seed):
            if (result.method, result.seed) not in shown:  # the baselines of a seed are every method's
                shown.add((result.method, result.seed))
                results.append(result)
    return render_report(
        ReportData(
            title=f"skillpress: {len(by_method(experiments))} methods compared",
            policies=sorted(results, key=lambda result: not result.baseline),
            curves=[c for e in experiments for c in curves(e.folder / RESULTS, e.method, e.seed)],
            comparisons=tests,
            paper_tables=tables,
            paper_notes=notes,
            parameters=experiments[0].params.model_dump(mode="json"),
            versions=versions,
        )
    )


def as_json(rows: Sequence[MethodRow], tests: Mapping[str, Comparison]) -> dict[str, Any]:
    """The table and the tests as JSON values."""
    return {
        "methods": [asdict(r) for r in rows],
        "comparisons": {name: asdict(t) for name, t in tests.items()},
    }


def by_method(experiments: Sequence[Experiment]) -> dict[str, list[Experiment]]:
    """The experiments of each method, methods in the order of their first."""
    groups: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault(experiment.method, []).append(experiment)
    return groups
