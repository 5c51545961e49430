"""Comparison of methods over their finished experiments (method x seed).

Methods are paired within a seed. A task that several seeds share counts as one task: ALFWorld's games are the
same for every seed, while each seed has its own Countdown tasks. Each method is tested against the random
explorer, and the other methods against the first one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, stdev
from typing import Any

import polars as pl

from skillpress.core.intervals import wilson
from skillpress.evaluation.statistics import Comparison, compare_trainings
from skillpress.evaluation.statistics.budget import success_against_budget
from skillpress.evaluation.statistics.episodes import episode_table
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings
from skillpress.pipeline.files import EXPLORER, TRAINED
from skillpress.pipeline.finished.paper_tables import tables_or_reason
from skillpress.pipeline.finished.results import BASELINES, curves, policy_results
from skillpress.pipeline.finished.run import FinishedRun, common
from skillpress.reports.report.data import ReportData
from skillpress.reports.report.page import render_report

FLOOR = BASELINES[EXPLORER]


@dataclass(frozen=True)
class MethodRow:
    """A row of the comparison's table; shares are in [0, 1]."""

    method: str
    """The method's name in the comparison, such as the name of its overlay."""
    ran: str
    """The method according to its parameters, or the kind of policy without training."""
    seeds: int
    pass_at_1: float
    std_over_seeds: float | None
    """None for a single seed."""
    tasks: int
    """The number of different tasks."""
    low: float
    """Wilson's 95% interval over tasks, for these trained policies."""
    high: float
    trainings_low: float | None
    """The 95% interval over seeds and tasks, for other trainings; None for a single seed."""
    trainings_high: float | None
    budget_area: float
    checkpoint: str
    """The rule that chose its weights (``training.keep``); empty for a policy without training."""


def table(experiments: Sequence[FinishedRun]) -> list[MethodRow]:
    """The random explorer and the imitation start of the first method, then every method in the given
    order."""
    groups = by_method(experiments)
    method, first = next(iter(groups.items()))
    ending = starts(groups)[method]
    rows = [row(f"{label}{ending}", first, policy) for policy, label in BASELINES.items()]
    return rows + [row(method, group, TRAINED) for method, group in groups.items()]


def starts(groups: Mapping[str, Sequence[FinishedRun]]) -> dict[str, str]:
    """The ending of the baselines' names for each method, such as `` of grpo``: the first method with the
    same start and evaluation. It is empty if all methods share these.
    """
    first: dict[str, str] = {}
    of = {}
    for method, (run, *_) in groups.items():
        of[method] = first.setdefault(json.dumps(common(run.params)), method)
    return {method: f" of {named}" if len(first) > 1 else "" for method, named in of.items()}


def row(label: str, experiments: Sequence[FinishedRun], policy: str) -> MethodRow:
    """The row of one policy over its experiments."""
    episodes = [episode_table(e.unchecked_steps(policy)) for e in experiments]
    scores = Scores.of([table.group_by("task_id").agg(score=pl.col("won").mean()) for table in episodes])
    seeds = scores.seed_means().tolist()
    interval = wilson(min(scores.mean(), 1.0), scores.effective_tasks())  # rounding may lift a mean above 1
    trainings = over_trainings(scores, shares=True)
    longest = experiments[0].params.environment.max_steps
    rules = sorted({experiment.params.training.keep for experiment in experiments})
    return MethodRow(
        method=label,
        ran=experiments[0].method.label if policy == TRAINED else label,
        seeds=len(experiments),
        pass_at_1=scores.mean(),
        std_over_seeds=stdev(seeds) if len(seeds) > 1 else None,
        tasks=scores.tasks,
        low=interval.low,
        high=interval.high,
        trainings_low=trainings.low if trainings else None,
        trainings_high=trainings.high if trainings else None,
        budget_area=mean(success_against_budget(table, longest).area for table in episodes),
        checkpoint=", ".join(rules) if policy == TRAINED else "",
    )


def paired_tests(experiments: Sequence[FinishedRun]) -> dict[str, Comparison]:
    """Every method against the random explorer, and against the first on the seeds that both finished."""
    groups = by_method(experiments)
    (reference, base), *others = groups.items()
    ours = {experiment.seed: experiment for experiment in base}
    tests = {f"{method} against {FLOOR}": _tested(group, group, EXPLORER) for method, group in groups.items()}
    for method, group in others:
        if paired := [e for e in group if e.seed in ours]:
            tests[f"{method} against {reference}"] = _tested([ours[e.seed] for e in paired], paired, TRAINED)
    return tests


def _tested(first: Sequence[FinishedRun], second: Sequence[FinishedRun], policy: str) -> Comparison:
    """The trained policies of ``second`` against this policy of ``first``."""
    params = first[0].params
    return compare_trainings(
        [one.unchecked_steps(policy) for one in first],
        [other.unchecked_steps(TRAINED) for other in second],
        max_steps=params.environment.max_steps,
        seed=0,
        votes=params.evaluation.votes,
    )


def verdict(rows: Sequence[MethodRow], tests: Mapping[str, Comparison]) -> str:
    """The page's first sentences: each success rate with its interval, and which methods are below the random
    explorer.
    """
    tasks = max(line.tasks for line in rows)
    levels = (
        f"{line.method} {line.pass_at_1:.1%} ({100 * line.low:.1f} to {100 * line.high:.1f}), "
        f"{line.seeds} seed{'' if line.seeds == 1 else 's'}"
        for line in (*rows[len(BASELINES) :], *rows[: len(BASELINES)])
    )
    said = [f"Success on {tasks:,} held-out tasks: {'; '.join(levels)}."]
    said += [
        f"{line.method} is below the {FLOOR}, by {-100 * test.difference:.1f} points "
        f"({-100 * test.high:.1f} to {-100 * test.low:.1f})."
        for line in rows[len(BASELINES) :]
        for test in [tests[f"{line.method} against {FLOOR}"].tests[-1]]
        if test.high < 0
    ]
    return " ".join([*said, "In brackets: 95% intervals over tasks, each by itself, for these policies."])


def page(
    experiments: Sequence[FinishedRun],
    rows: Sequence[MethodRow],
    tests: Mapping[str, Comparison],
    versions: Mapping[str, str],
) -> str:
    """The comparison as its own report; the parameters shown are those of the first experiment."""
    tables, notes = tables_or_reason(experiments)
    results = []
    shown: set[tuple[str, int]] = set()
    endings = starts(by_method(experiments))
    for experiment in experiments:
        for found in policy_results(experiment, experiment.label):
            ending = endings[experiment.label] if found.baseline else ""
            result = replace(found, method=f"{found.method}{ending}")
            if (result.method, result.seed) not in shown:  # methods with one start share its baselines
                shown.add((result.method, result.seed))
                results.append(result)
    return render_report(
        ReportData(
            title=f"skillpress: {len(by_method(experiments))} methods compared",
            verdict=verdict(rows, tests),
            policies=sorted(results, key=lambda result: not result.baseline),
            curves=[c for e in experiments for c in curves(e, e.label)],
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


def text(rows: Sequence[MethodRow], tests: Mapping[str, Comparison]) -> Iterator[str]:
    """The table and the tests in Pass@1 as lines to print, each interval with what it covers."""
    for line in rows:
        others = ""
        if line.trainings_low is not None:
            others = f"; other trainings [{line.trainings_low:.3f}, {line.trainings_high:.3f}]"
        counts = f"{line.seeds} seed{'' if line.seeds == 1 else 's'}, {line.tasks:,} tasks"
        ran = "" if line.ran == line.method else f"; it is {line.ran}"
        interval = f"[{line.low:.3f}, {line.high:.3f}]"
        yield f"{line.method:20} Pass@1 {line.pass_at_1:.3f} {interval}{others}; {counts}{ran}"
    for name, comparison in tests.items():
        test = comparison.tests[-1]
        others = ""
        if (of := test.trainings) is not None:
            others = f"; other trainings [{of.low:+.3f}, {of.high:+.3f}], p {of.p:.3f}"
            others += "" if test.signs_p is None else f", of signs {test.signs_p:.3f}"
            others += f" ({of.seeds} seeds)"
        below = ": below it" if name.endswith(f" against {FLOOR}") and test.high < 0 else ""
        yield (
            f"{name}: {test.difference:+.3f}; these policies [{test.low:+.3f}, {test.high:+.3f}], "
            f"p {test.bootstrap_p:.3f}{others}{below}"
        )


def by_method(experiments: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """The experiments of each method; methods in the order of their first experiment."""
    groups: dict[str, list[FinishedRun]] = {}
    for experiment in experiments:
        groups.setdefault(experiment.label, []).append(experiment)
    return groups
