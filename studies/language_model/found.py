"""What was found, in sentences: each follows the verdicts of the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from docs.made import prose
from docs.words import points
from skillpress.pipeline.files import START, TRAINED
from studies.language_model.behaviour import REFUSED
from studies.language_model.names import BENCHMARK, NAMES, QUESTION
from studies.language_model.trainings import ABOVE, BELOW, EQUAL, against_random, trainings
from studies.statistics.contrasts import YES
from studies.study.results import Results

LAST_POINTS = 5
"""Refused actions are those of so many recorded steps at the end; every second step is recorded."""


def found(results: Results) -> Iterator[str]:
    """A paragraph; a sentence while runs are missing."""
    every = trainings(results)
    planned = len(NAMES) * len(results.plan.benchmarks[BENCHMARK].seeds)
    if len(every) < planned:
        yield f"Trainings are missing: {planned - len(every)} of {planned}."
        return
    gains = [one.after - one.before for one in every]
    more = [one for one in every if one.low > 0]
    yield from prose(
        f"{len(more)} of the {len(every)} trainings are shown to win more of their held-out puzzles",
        f"than their starts: the differences are {_span(gains, 0, signed=True)} points.",
        *_claims(results),
        _random(results),
        _refusals(results),
    )


def _claims(results: Results) -> Iterator[str]:
    """The plan's claims, which are about other trainings too."""
    yield "For other trainings of the kind, the plan's question:"
    told = []
    for one in results.findings(QUESTION):
        figures = points(one.difference, one.low, one.high)
        said = "shown" if one.verdict == YES else one.verdict
        told.append(f"`{one.claim.second}` against `{one.claim.first}` {figures}, {said}")
    yield "; ".join(told) + f" ({len(results.plan.benchmarks[BENCHMARK].seeds)} seeds)."


def _random(results: Results) -> str:
    every = against_random(results)
    count = Counter(one.verdict for one in every)
    return (
        "Against a random player that makes no mistakes of form, on the same puzzles, "
        f"{count[ABOVE]} of the {len(every)} end above, {count[BELOW]} below, and {count[EQUAL]} are {EQUAL} "
        f"({_span([one.trained - one.explorer for one in every], 0, signed=True)} points)."
    )


def _refusals(results: Results) -> str:
    """Refused actions of won episodes, and of all episodes at the end of training."""
    runs = [run for method in NAMES for run in results.runs.get((BENCHMARK, method), {}).values()]
    won = {
        policy: [run.behavior[policy][REFUSED][0] for run in runs if REFUSED in run.behavior.get(policy, {})]
        for policy in (START, TRAINED)
    }
    last = [share for run in runs if (share := _refused_at_the_end(run.curve)) is not None]
    if not (won[START] and won[TRAINED] and last):
        return ""
    return (
        f"Of the actions in won episodes {_span(won[START], 1)}% are refused before training and "
        f"{_span(won[TRAINED], 1)}% after it; of all actions in the last recorded steps of training "
        f"{_span(last, 1)}% were still refused."
    )


def _refused_at_the_end(curve: object) -> float | None:
    """The share of the actions in a training's last recorded steps; None if nothing is recorded of it."""
    columns = curve if isinstance(curve, dict) else {}
    steps, shares = columns.get("environment_steps", []), columns.get("invalid", [])
    pairs = [
        (count, share) for count, share in zip(steps, shares, strict=False) if None not in (count, share)
    ]
    actions = sum(count for count, _ in pairs[-LAST_POINTS:])
    return sum(count * share for count, share in pairs[-LAST_POINTS:]) / actions if actions else None


def _span(shares: list[float], digits: int, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    low, high = (f"{100 * one:{sign}.{digits}f}" for one in (min(shares), max(shares)))
    return low if low == high else f"{low} to {high}"
