"""The parts of the page that are made: what is recorded, the findings of each question, and levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import stdev

from docs.words import NONE, p_value, points, table
from skillpress.evaluation.study.holm import holm
from studies.statistics.compression import HELD, MEASURES, MODEL, Prediction
from studies.statistics.contrasts import OPEN, ClaimEvidence
from studies.statistics.power import MOST_SEEDS, seeds_needed
from studies.study.results import FLOORS, Results

LEVEL = 0.05
MIDDLE = "interquartile mean"


def state(results: Results) -> Iterator[str]:
    """How many runs are there."""
    rows = []
    for benchmark, entry in results.plan.benchmarks.items():
        seeds = f"{entry.seeds[0]} to {entry.seeds[-1]}"
        done = f"{results.recorded[benchmark]} of {results.planned.get(benchmark, 0)}"
        methods = len(results.plan.chosen()[benchmark])
        rows.append((entry.words, str(methods), seeds, done))
    yield from table(("benchmark", "methods", "seeds", "runs recorded"), rows)


def findings(results: Results, question: str) -> Iterator[str]:
    """A table per family of the question's claims."""
    found = results.findings(question)
    secondary = _secondary(results, question)
    for family in dict.fromkeys(finding.claim.family for finding in found):
        mine = [(place, finding) for place, finding in enumerate(found) if finding.claim.family == family]
        yield from ("", f"*{family[0].upper()}{family[1:]}* ({len(mine)} claims):", "")
        heads = (
            "claim", "difference, points (95%)", MIDDLE, "seeds", "p, corrected", "p of signs", "verdict",
            "secondary",
        )  # fmt: skip
        rows = [
            (
                *_cells(results, finding, len(mine)),
                "; ".join(words[place] for words in secondary if words[place]),
            )
            for place, finding in mine
        ]
        yield from table(heads, rows)


def _cells(results: Results, finding: ClaimEvidence, claims: int) -> tuple[str, ...]:
    claim = finding.claim
    sign = {"higher": ">", "lower": "<", "differs": "≠", "same": "="}[claim.expect]
    where = results.plan.benchmarks[claim.benchmark].words + (f", {claim.of_class}" if claim.of_class else "")
    return (
        f"{where}: `{claim.second}` {sign} `{claim.first}`",
        points(finding.difference, finding.low, finding.high),
        middle(finding),
        f"{len(finding.per_seed)} of {finding.planned}",
        p_value(finding.corrected),
        p_value(finding.p_of_signs),
        finding.verdict + what_would_tell(finding, claims),
    )


def middle(finding: ClaimEvidence) -> str:
    """The interquartile mean of the seeds' differences, in points, with its interval."""
    return NONE if finding.middle is None else points(*finding.middle)


def what_would_tell(finding: ClaimEvidence, claims: int) -> str:
    """For an open claim, the seeds that find a difference of the margin with 80% probability.

    Args:
        claims: in its family; the level is that of the strictest step of their correction.
    """
    if (
        finding.verdict != OPEN
        or finding.claim.expect == "same"
        or len(finding.per_seed) < 2
        or not (deviation := stdev(finding.per_seed))
    ):
        return ""
    margin = 100 * finding.margin
    try:
        seeds = seeds_needed(finding.margin, deviation, LEVEL / claims)
    except ValueError:
        return f"; over {MOST_SEEDS:,} seeds would be needed"
    return f"; {seeds} seeds would show {margin:g} point{'s' if margin != 1 else ''}"


def _secondary(results: Results, question: str) -> list[list[str]]:
    """Per secondary outcome, a text per claim; empty where the benchmark has it not, or no run is there."""
    outcomes = dict.fromkeys(
        name for b in results.plan.questions[question].runs for name in results.plan.benchmarks[b].secondary
    )
    every = []
    for outcome in outcomes:
        words = []
        for finding in results.findings(question, outcome):
            wanted = outcome in results.plan.benchmarks[finding.claim.benchmark].secondary
            shown = wanted and finding.difference is not None and not finding.claim.of_class
            text = points(finding.difference, finding.low, finding.high)
            words.append(f"{outcome.replace('_', ' ')} {text}" if shown else "")
        every.append(words)
    return every


def levels(results: Results, benchmark: str) -> Iterator[str]:
    """Every method's outcomes on a benchmark and its gain over its start, after the floors."""
    entry = results.plan.benchmarks[benchmark]
    outcomes = (entry.outcome, *entry.secondary)
    rows = []
    for method in (*FLOORS, *results.plan.chosen()[benchmark]):
        found = [results.level(benchmark, method, outcome) for outcome in outcomes]
        cells = [level.in_percent() if level else NONE for level in found]
        name = FLOORS.get(method) or f"`{method}`: {results.plan.methods[method].words}"
        gain = results.gain(benchmark, method, entry.outcome)
        cells.append(gain.in_points() if gain else NONE)
        rows.append((name, str(found[0].seeds if found[0] else 0), *cells))
    first, *others = (outcome.replace("_", " ") for outcome in outcomes)
    told = f"*{entry.words}*, percent, and points above the start (95%, other trainings and other tasks):"
    yield from ("", told, "")
    yield from table(("method", "seeds", first, *others, f"{first} above the start"), rows)


def corrected_predictions(found: Sequence[Prediction]) -> list[float | None]:
    """Holm's correction over all measures and benchmarks; None where nothing was fitted."""
    values = holm([1.0 if one.p is None else one.p for one in found])
    return [None if one.p is None else value for one, value in zip(found, values, strict=True)]


def compression(results: Results, question: str) -> Iterator[str]:
    """Question 6."""
    found = results.predictions(question)
    rows = [
        (
            results.plan.benchmarks[one.benchmark].words,
            MEASURES[one.measure],
            f"{one.runs} runs, {one.rows} steps",
            _number(one.partial),
            _number(one.within_seeds),
            _number(one.slope, one.low, one.high),
            p_value(corrected),
            compression_verdict(results, one, corrected),
        )
        for one, corrected in zip(found, corrected_predictions(found), strict=True)
    ]
    heads = (
        "benchmark",
        "measure",
        "from",
        "partial correlation",
        "within seeds",
        "slope, standardised (95%)",
        "p, corrected",
        "verdict",
    )
    yield from ("", *table(heads, rows))
    held = " and ".join(HELD.values())
    yield from ("", f"The slope is that of `{MODEL}`; the partial correlation holds {held} constant.")


def compression_verdict(results: Results, one: Prediction, corrected: float | None) -> str:
    """The verdict by the plan's rule; none while a run of the question is missing."""
    wanted = _runs_of_question_6(results, one.benchmark)
    if one.runs < wanted or one.slope is None or one.partial is None or corrected is None:
        return f"runs are missing ({one.runs} of {wanted})"
    if corrected < LEVEL and one.slope < 0:
        return "no, reversed"
    if corrected < LEVEL and one.partial > 0:
        return "yes"
    assert one.low is not None and one.high is not None and one.gap_deviation is not None
    moved = max(abs(one.low), abs(one.high)) * one.gap_deviation
    small = moved < results.plan.benchmarks[one.benchmark].margin
    return "no, too small to matter" if small else "cannot be told"


def _runs_of_question_6(results: Results, benchmark: str) -> int:
    """Probed runs that the benchmark will have: all of its runs are probed."""
    return results.planned.get(benchmark, 0)


def _number(value: float | None, low: float | None = None, high: float | None = None) -> str:
    if value is None:
        return NONE
    return f"{value:+.2f}" + ("" if low is None or high is None else f" ({low:+.2f} to {high:+.2f})")
