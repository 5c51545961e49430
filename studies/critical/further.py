"""The second plan, ``params/critical_further``: what its runs say, on the page and in the tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from docs.made import Parts, bullet
from docs.words import points
from skillpress.pipeline.files import TRAINED
from studies.critical.controls.known import listed
from studies.critical.found import differences, shown
from studies.critical.page import claims, levels, summary
from studies.critical.predictions import read_predictions
from studies.critical.results import RECORD, ROUTINES, UNSEEN, Critical
from studies.statistics.contrasts import MISSING
from studies.study.results import read_results
from studies.study.sections import state

PLAN = Path("params/critical_further")
PREDICTIONS = "further.json"
TRANSFER = "q4_transfer"


def read_further(root: Path) -> Critical:
    """The second plan with its record and predictions; ``UserError`` for a wrong plan or a damaged file."""
    results = read_results(root, root / PLAN, root / RECORD)
    return Critical(results, read_predictions(root / RECORD, PREDICTIONS), choices={})


def further_parts(found: Critical) -> Parts:
    """Name of a part to what makes its lines."""
    plan = found.results.plan
    return {
        "further": lambda: answers(found),
        "further_state": lambda: state(found.results),
        "further_verdicts": lambda: summary(found),
        "further_claims": lambda: chain.from_iterable(claims(found, name) for name in plan.questions),
        "further_levels": lambda: chain.from_iterable(levels(found, cell) for cell in plan.benchmarks),
        "diverged": lambda: diverged(found),
        "transfer": lambda: transfer(found),
    }


def answers(found: Critical) -> Iterator[str]:
    """A bullet for every question: its claims and differences; only the latter while runs are missing."""
    for name, question in found.results.plan.questions.items():
        mine = [one for one in found.findings if one.claim.question == name]
        if any(one.verdict == MISSING for one in mine):
            seeds = min(len(one.per_seed) for one in mine)
            so_far = f"Runs are missing; so far, of {seeds} seeds at least and without a verdict:"
            yield from bullet(f"**{question.title}**", so_far if seeds else "No run yet.", *differences(mine))
            continue
        yield from bullet(f"**{question.title}**", f"Claims: {shown(mine)}.", *differences(mine))


def diverged(found: Critical) -> Iterator[str]:
    """Every run that the plan's rule calls diverged."""
    rule = found.results.plan.diverged
    if rule is None:
        return
    limit = f"more than {100 * rule.below_median:g} points below the median of its method and cell"
    named = []
    judged = [cell for cell, entry in found.results.plan.benchmarks.items() if entry.outcome == rule.outcome]
    for (cell, method), runs in found.results.runs.items():
        if cell not in judged:
            continue
        means = {seed: _mean(found, cell, method, seed, rule.outcome) for seed in runs}
        middle = float(np.median(list(means.values())))
        named += [
            f"`{cell}`, `{method}`, seed {seed} ({points(value - middle)})"
            for seed, value in means.items()
            if middle - value > rule.below_median
        ]
    runs_there = sum(found.results.recorded[cell] for cell in judged)
    told = "; ".join(named) or "none"
    yield from bullet(
        f"Diverged by the plan's rule ({limit}, in {rule.outcome}), of {runs_there} runs: {told}."
    )


def transfer(found: Critical) -> Iterator[str]:
    """Over the runs of a cell: routines on known tasks against success on unseen ones."""
    for cell in found.results.plan.questions[TRANSFER].runs:
        pairs = [
            (
                _mean(found, cell, method, seed, ROUTINES),
                _mean(found, cell, method, seed, f"pass_at_1 in {UNSEEN}"),
            )
            for (name, method), runs in found.results.runs.items()
            if name == cell
            for seed in runs
        ]
        if len(pairs) < 3:
            yield from bullet(f"{listed([cell])}: runs are missing.")
            continue
        routines, success = np.array(pairs).T
        r = float(np.corrcoef(routines, success)[0, 1])
        yield from bullet(
            f"{listed([cell])}: correlation {r:+.2f} over {len(pairs)} runs, whose routines are",
            f"{100 * routines.min():.0f} to {100 * routines.max():.0f}% of known wins, and whose success on",
            f"unseen tasks is {100 * success.min():.0f} to {100 * success.max():.0f}%.",
        )


def _mean(found: Critical, cell: str, method: str, seed: int, outcome: str) -> float:
    run = found.results.runs[cell, method][seed]
    return float(found.results.scores(run, TRAINED, outcome)["score"].to_numpy().mean())
