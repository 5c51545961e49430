"""The page's tables as rows of formatted text; the template only places them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import polars as pl

from skillpress.evaluation.analysis.mdl_report import ARROW
from skillpress.evaluation.paper.correspondence import Correspondence
from skillpress.evaluation.statistics import BehaviorFigure, Comparison, EvaluationSummary, SuccessRate
from skillpress.evaluation.statistics.paired import PairedTest
from skillpress.evaluation.study.holm import holm
from skillpress.reports.report.data import Curve, PolicyResult, by_method
from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary

NOTHING = "–"
"""The mark for a figure without any qualifying episode."""
MINUS = "\u2212"


@dataclass(frozen=True)
class TableValue:
    """A cell: the figure, and the small print after it."""

    text: str
    note: str = ""


@dataclass(frozen=True)
class TableRow:
    """A line of a table."""

    label: str
    values: tuple[TableValue, ...]
    note: str = ""


@dataclass(frozen=True)
class ReportTable:
    """Column heads (without the first column, which holds the labels) and lines."""

    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]


def success_table(policies: Sequence[PolicyResult]) -> ReportTable:
    """Pass@1, SC@k, success at step budgets and the budget area of every method."""
    votes = max(policy.summary.votes for policy in policies)
    points = sorted({point for policy in policies for point in policy.summary.budget.points})
    heads = ["Pass@1", *([f"SC@{votes}"] if votes > 1 else []), *(f"≤ {p} steps" for p in points), "Area"]
    rows = []
    for method, results in by_method(policies).items():
        summaries = [result.summary for result in results]
        values = [_rate([s.pass_at_1 for s in summaries])]
        if votes > 1:
            values.append(_rate([s.self_consistency for s in summaries]))
        for point in points:
            at = [s.budget.points[point] for s in summaries if point in s.budget.points]
            values.append(TableValue(f"{mean(at):.1%}" if at else NOTHING))
        values.append(TableValue(f"{mean(s.budget.area for s in summaries):.3f}"))
        episodes = sum(s.pass_at_1.episodes for s in summaries)
        behind = [f"{len(results)} seeds"] if len(results) > 1 else []
        told = dict.fromkeys(text for r in results for text in (r.ran, r.checkpoint) if text)
        behind += [_count(episodes, "episode"), *told]
        rows.append(TableRow(method, tuple(values), ", ".join(behind)))
    return ReportTable(tuple(heads), tuple(rows))


def strata_table(
    policies: Sequence[PolicyResult], rates: Callable[[EvaluationSummary], Mapping[str, SuccessRate]]
) -> ReportTable:
    """A success rate by class of task, one line each; no lines if there are fewer than two classes."""
    methods = by_method(policies)
    strata = sorted({stratum for policy in policies for stratum in rates(policy.summary)})
    if len(strata) < 2:
        return ReportTable((), ())
    rows = []
    for stratum in strata:
        found = [
            [rates(r.summary)[stratum] for r in results if stratum in rates(r.summary)]
            for results in methods.values()
        ]
        tasks = max(rate.tasks for of_method in found for rate in of_method)
        values = tuple(_rate(of_method) if of_method else TableValue(NOTHING) for of_method in found)
        rows.append(TableRow(stratum or "unnamed", values, _count(tasks, "task")))
    return ReportTable(tuple(methods), tuple(rows))


def behavior_table(policies: Sequence[PolicyResult]) -> ReportTable:
    """One line per behaviour figure, one column per method."""
    return _figure_table(policies, lambda policy: policy.behavior)


def failure_table(policies: Sequence[PolicyResult]) -> ReportTable:
    """One line per kind of step. The figure of a single seed has its interval over tasks below it."""
    return _figure_table(policies, lambda policy: policy.failures, intervals=True)


def _figure_table(
    policies: Sequence[PolicyResult],
    of: Callable[[PolicyResult], Sequence[BehaviorFigure]],
    intervals: bool = False,
) -> ReportTable:
    methods = by_method(policies)
    order = {f.key: f for policy in policies for f in of(policy)}
    rows = []
    for key, first in order.items():
        found = [[f for r in results for f in of(r) if f.key == key] for results in methods.values()]
        cells = [_figures(figures, intervals) for figures in found]
        rows.append(TableRow(first.label, tuple(cells), _unit(first)))
    return ReportTable(tuple(methods), tuple(rows))


def comparison_table(comparisons: Mapping[str, Comparison]) -> ReportTable:
    """The paired tests: one line per pair of policies and step budget, and one for the votes if there are
    any.

    McNemar's test needs a single seed, the test of other trainings needs several. If a table has only one of
    these kinds, the other's columns are left out. The planned tests are those of the whole episode, one for
    each pair: below their p is the one that Holm's method corrects for the number of pairs.
    """
    seeds = [comparison.seeds for comparison in comparisons.values()]
    kinds = [_over_tasks]
    kinds += [_mcnemar] if 1 in seeds else []
    kinds += [_other_trainings] if max(seeds, default=1) > 1 else []
    heads = tuple(head for kind in kinds for head in HEADS[kind])
    planned = [comparison.tests[-1] for comparison in comparisons.values()]
    corrected = {kind: _corrected([P_OF[kind](test) for test in planned]) for kind in kinds}
    rows = []
    for place, (pair, comparison) in enumerate(comparisons.items()):
        lines = [(f"within {test.budget} steps", test) for test in comparison.tests]
        if comparison.verdicts is not None:
            lines.append((f"SC@{comparison.votes}", comparison.verdicts))
        for position, (note, test) in enumerate(lines):
            counts = f", {_count(comparison.seeds, 'seed')}, {_count(comparison.tasks, 'task')}"
            values = []
            for kind in kinds:
                *others, p = kind(test)
                known = corrected[kind][place] if test is planned[place] else None
                small = "" if known is None or len(planned) == 1 else f"corrected {_p(known)}"
                values += [*map(TableValue, others), TableValue(p, small)]
            rows.append(
                TableRow("" if position else pair, tuple(values), note if position else f"{note}{counts}")
            )
    return ReportTable(heads, tuple(rows))


def _corrected(values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of the known p, in the same positions."""
    known = iter(holm([p for p in values if p is not None]))
    return [None if p is None else next(known) for p in values]


def _over_tasks(test: PairedTest) -> tuple[str, ...]:
    interval = f"{_points(test.low)} to {_points(test.high)}"
    return _points(test.difference), interval, _p(test.bootstrap_p)


def _mcnemar(test: PairedTest) -> tuple[str, ...]:
    if test.mcnemar_p is None:
        return NOTHING, NOTHING
    return f"{test.only_second} : {test.only_first}", _p(test.mcnemar_p)


def _other_trainings(test: PairedTest) -> tuple[str, ...]:
    of = test.trainings
    signs = NOTHING if test.signs_p is None else _p(test.signs_p)
    if of is None:
        return NOTHING, signs, NOTHING
    return f"{_points(of.low)} to {_points(of.high)}", signs, _p(of.p)


HEADS = {
    _over_tasks: ("Difference", "These policies", "p"),
    _mcnemar: ("Won by only one", "McNemar p"),
    _other_trainings: ("Other trainings", "p of signs", "p"),
}
"""The columns of each kind of test; the last is its p."""
P_OF: Mapping[Callable[[PairedTest], tuple[str, ...]], Callable[[PairedTest], float | None]] = {
    _over_tasks: lambda test: test.bootstrap_p,
    _mcnemar: lambda test: test.mcnemar_p,
    _other_trainings: lambda test: None if test.trainings is None else test.trainings.p,
}


@dataclass(frozen=True)
class PhraseRow:
    """A learned phrase, its uses and the bits that it saves."""

    phrase: tuple[str, ...]
    count: int
    """Uses in the minimal segmentation of the corpus."""
    bits: float
    """Additional bits that the corpus would need without the phrase."""


def phrase_rows(phrases: pl.DataFrame, top: int = 12) -> list[PhraseRow]:
    """The learned phrases of ``mdl_report.phrase_table`` that save most bits, in decreasing order."""
    learned = phrases.filter(pl.col("length") > 1).sort("bits_saved", descending=True, maintain_order=True)
    return [
        PhraseRow(tuple(row["phrase"].split(ARROW)), row["uses"], row["bits_saved"])
        for row in learned.head(top).iter_rows(named=True)
    ]


def flat(parameters: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested parameters as pairs (dotted key, value)."""
    rows: list[tuple[str, str]] = []
    for key, value in parameters.items():
        path = f"{prefix}{key}"
        rows += flat(value, f"{path}.") if isinstance(value, Mapping) else [(path, str(value))]
    return rows


def _rate(rates: Sequence[SuccessRate]) -> TableValue:
    """The mean over seeds; below it the interval of a single seed, or the range of several."""
    if len(rates) > 1:
        return TableValue(
            f"{mean(rate.mean for rate in rates):.1%}", _range([f"{r.mean:.1%}" for r in rates])
        )
    (rate,) = rates
    deviation = "" if rate.std is None else f" ± {100 * rate.std:.1f}"
    return TableValue(f"{rate.mean:.1%}{deviation}", f"{rate.low:.1%} to {rate.high:.1%}")


def _figures(figures: Sequence[BehaviorFigure], intervals: bool) -> TableValue:
    """The mean over seeds, with the episodes behind it and, if asked for, a single seed's interval."""
    known = [figure.value for figure in figures if figure.value is not None]
    episodes = f"n = {sum(figure.episodes for figure in figures):,}"
    if not known:
        return TableValue(NOTHING, episodes if figures else "")
    texts = [_number(value, figures[0].unit) for value in known]
    note = f"{_range(texts)}, {episodes}" if len(known) > 1 else episodes
    low, high, unit = figures[0].low, figures[0].high, figures[0].unit
    if intervals and len(known) == 1 and low is not None and high is not None:
        note = f"{_number(low, unit)} to {_number(high, unit)}, {episodes}"
    return TableValue(_number(mean(known), unit), note)


def _number(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if unit == "count" and value == int(value) else f"{value:.2f}"


def _range(texts: Sequence[str]) -> str:
    ordered = sorted(texts, key=lambda text: float(text.rstrip("%").replace(",", "")))
    return f"{ordered[0]} to {ordered[-1]}"


def _unit(figure: BehaviorFigure) -> str:
    return {"share": "", "steps": "steps", "per success": "per success", "count": "episodes"}[figure.unit]


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", MINUS)


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


LIBRARY_HEADS = ("Since step", "For", "Uses by successes", "Failures behind it", "Why")
PAIR_HEADS = ("In the dictionary", "In the skill library", "Closest skill by a teacher")


def library_table(library: SkillLibrary) -> ReportTable:
    """One line per skill, the oldest first."""
    rows = (_skill_row(version.step, skill) for version in library.versions for skill in version.added)
    return ReportTable(LIBRARY_HEADS, tuple(rows))


def correspondence_table(pairs: Sequence[Correspondence], library: SkillLibrary) -> ReportTable:
    """One line per pair of the paper's Table 11."""
    return ReportTable(PAIR_HEADS, tuple(_pair(pair, bool(library.versions)) for pair in pairs))


def _skill_row(step: int, skill: Skill) -> TableRow:
    values = (
        TableValue(str(step)),
        TableValue("every task" if skill.task_class == GENERAL else skill.task_class),
        TableValue(f"{skill.uses:,}" if skill.phrase else NOTHING),
        TableValue(f"{len(skill.failures):,}"),
        TableValue(skill.why),
    )
    return TableRow(skill.text, values, ARROW.join(skill.phrase))


def _pair(pair: Correspondence, has_library: bool) -> TableRow:
    if pair.uses is None:
        known = TableValue("no dictionary")
    elif pair.rank is None:
        known = TableValue("no")
    else:
        known = TableValue(f"{pair.uses:,}×", f"place {pair.rank} by uses")
    if not has_library:
        return TableRow(
            ARROW.join(pair.phrase), (known, TableValue("no library"), TableValue(NOTHING)), pair.printed
        )
    made = (
        TableValue("no")
        if pair.step is None
        else TableValue(f"since step {pair.step}", ", ".join(pair.classes))
    )
    said = (
        TableValue(pair.closest, f"{pair.overlap:.0%} of the words in common")
        if pair.closest
        else TableValue(NOTHING)
    )
    return TableRow(ARROW.join(pair.phrase), (known, made, said), pair.printed)


SHAPING_ALONE = "advantage_of_shaping_alone"
"""The column with the part of a step's sum of |A| that distinguishes episodes of equal success."""
WORTH_SAYING = 0.1
"""The page mentions a part larger than this."""


def shaping_notes(curves: Sequence[Curve]) -> Iterator[str]:
    """A sentence per method that learned more than ``WORTH_SAYING`` from costs alone, the mean over steps."""
    for method in dict.fromkeys(curve.method for curve in curves):
        frames = [c.frame for c in curves if c.method == method and SHAPING_ALONE in c.frame.columns]
        parts = [_mean(frame, SHAPING_ALONE) for frame in frames]
        if not parts or (part := sum(parts) / len(parts)) <= WORTH_SAYING:
            continue
        groups = sum(_mean(frame, "shaping_alone") for frame in frames) / len(frames)
        steps = sum(frame[SHAPING_ALONE].count() for frame in frames)
        seeds = f", {min(parts):.0%} to {max(parts):.0%} by seed" if len(parts) > 1 else ""
        yield (
            f"{method}: {part:.0%} of the learning signal (the sum of |A|; mean of {steps} training steps of "
            f"{len(parts)} seed{'' if len(parts) == 1 else 's'}{seeds}) told apart episodes that did equally "
            f"well. In {groups:.0%} of the groups only shaping, other penalties or measures differ."
        )


def buffer_note(curves: Sequence[Curve], parameters: Mapping[str, Any]) -> str:
    """A sentence if the run's buffer added nothing to any corpus; empty if it did, or for several methods."""
    buffer, column = parameters.get("skills", {}).get("buffer"), "dictionary/earlier_share"
    known = [curve.frame[column] for curve in curves if column in curve.frame.columns]
    if not buffer or len({curve.method for curve in curves}) != 1 or not known:
        return ""
    steps = sum(shares.count() for shares in known)
    if not steps or any(float(shares.max() or 0.0) > 0 for shares in known):  # type: ignore[arg-type]
        return ""
    return (
        f"The buffer of {buffer} successes added nothing to the dictionary in any of {steps} training steps: "
        "without it this training would be the same."
    )


MISMATCH_HEADS = ("Difference in nats", "Ratio of a token", "Ratio of a response", "Cut at the cap")


def mismatch_table(curves: Sequence[Curve]) -> ReportTable:
    """One line per training run that measured the difference, with medians over its steps.

    Ratios are learner to engine; below each is the range from the 1st to the 99th percentile. They cover all
    trained tokens if importance weights needed them, otherwise the responses that were compared.
    """
    measured = [curve for curve in curves if "mismatch/mean" in curve.frame.columns]
    rows = [TableRow(curve.method, _mismatch_values(curve.frame), f"seed {curve.seed}") for curve in measured]
    return ReportTable(MISMATCH_HEADS, tuple(rows))


def _mismatch_values(frame: pl.DataFrame) -> tuple[TableValue, ...]:
    weighted = "importance/truncated" in frame.columns
    source = "importance" if weighted else "mismatch"
    largest = float(frame["mismatch/largest"].max())  # type: ignore[arg-type]
    return (
        TableValue(f"{_median(frame, 'mismatch/mean'):.2g}", f"largest {largest:.2g}"),
        _ratio(frame, f"{source}/token_ratio"),
        _ratio(frame, f"{source}/sequence_ratio"),
        TableValue(f"{_median(frame, 'importance/truncated'):.2%}" if weighted else NOTHING),
    )


def _mean(frame: pl.DataFrame, name: str) -> float:
    """The mean over the steps that have the column."""
    return float(frame[name].drop_nulls().drop_nans().mean() or 0.0)  # type: ignore[arg-type]


def _ratio(frame: pl.DataFrame, name: str) -> TableValue:
    low, middle, high = (_median(frame, f"{name}_{quantile}") for quantile in ("p01", "p50", "p99"))
    return TableValue(f"{middle:.4g}", f"{low:.4g} to {high:.4g}")


def _median(frame: pl.DataFrame, column: str) -> float:
    return float(frame[column].cast(pl.Float64).drop_nulls().median())  # type: ignore[arg-type]
