"""What of docs/critical_experiment.md, and of the tables beside the record, is made from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from docs.made import Parts
from docs.words import NONE, p_value, points, table
from skillpress.evaluation.analysis.reuse_conditions import Conditions, conditions
from skillpress.evaluation.study.holm import holm
from skillpress.evaluation.study.plan import divided
from studies.critical.choices import LOG, LOGS, OVERLAYS, Choices
from studies.critical.controls.known import controls_in_short, controls_table, listed, sweep_table
from studies.critical.found import changes_of_segcost, critical_in_short, found_bullets
from studies.critical.predictions import MEANING, disagreements, in_table, not_run, predicted
from studies.critical.results import ROUTINES, SUCCESSES, Critical
from studies.statistics.compression import MEASURES
from studies.statistics.contrasts import LEVEL, MISSING, YES, ClaimEvidence
from studies.statistics.divergence import coverage, seeds_to_cover
from studies.statistics.gap_of_runs import SMALL, Agreement
from studies.statistics.interquartile import interquartile
from studies.study.results import FLOORS, Level
from studies.study.sections import MIDDLE, middle, state, what_would_tell

SIGNS = {"higher": ">", "lower": "<", "differs": "≠", "same": "="}
"""What a claim says of its second method, compared with its first."""
ANSWERED = ("grpo", "segcost")
"""The two methods that the first table compares."""
WORDS = {"measure_by_routine": "routines", "pass_at_1": "success"}
"""Outcomes as tables name them."""

SEEDS = (3, 5, 8, 12, 16, 20, 25, 32, 40, 50, 64, 96)
"""Numbers of seeds of which the coverage is simulated."""
SCATTERS = (0.5, 1.0, 2.0)
"""Points by which trainings that do not diverge scatter; half a point in `longer` with a constant penalty."""
COVERED = (0.90, 0.93)
"""Coverages that are asked for of a nominal 95%."""


def parts(found: Critical) -> Parts:
    """Name of a part to what makes its lines."""
    return {
        "state": lambda: _state(found),
        "answer": lambda: answer(found),
        "found": lambda: found_bullets(found),
        "changes": lambda: changes_of_segcost(found),
        "critical_in_short": lambda: critical_in_short(found),
        "predictions": lambda: preferences(found),
        "reuse_or_names": lambda: controls_in_short(found.controls),
        "controls": lambda: controls_table(found.controls),
        "granularity": lambda: sweep_table(found.controls),
        "coverage": covered,
        "levels": lambda: (line for cell in found.results.plan.benchmarks for line in levels(found, cell)),
        "summary": lambda: chain(
            _figure("critical_routines", "The share of wins by routine of every cell and method"),
            _figure("critical_predictions", "The predicted preference against the change that was found"),
        ),
        "verdicts": lambda: summary(found),
        "claims": lambda: (line for name in found.results.plan.questions for line in claims(found, name)),
        "compression": lambda: compression(found),
        "choices": lambda: choices(found.choices),
        "logs": lambda: logs(found.choices),
    }


def _figure(name: str, words: str) -> Iterator[str]:
    yield from (f"![{words}](figures/{name}.svg)", "")


def _state(found: Critical) -> Iterator[str]:
    """How many runs are there, and what is missing of the predictions."""
    planned, recorded = found.results.planned, found.results.recorded
    if recorded == planned:
        yield f"All {sum(planned.values())} runs of the plan are recorded."
    else:
        yield from state(found.results)
    cells = found.results.plan.chosen()
    unpredicted = [
        cell for cell, methods in cells.items() if set(methods) - found.predictions.get(cell, {}).keys()
    ]
    if not found.predictions:
        yield from ("", "There are no predictions yet.")
    elif unpredicted:
        yield from ("", f"Not every method is predicted in: {', '.join(unpredicted)}.")
    for line in disagreements(found.results.plan, found.predictions):
        yield from ("", f"Plan and predictions disagree. {line}.")
    if unplanned := not_run(found.results.plan, found.predictions):
        where = list(dict.fromkeys(cell for each in unplanned.values() for cell in each))
        yield from ("", f"Predicted, and not run in {listed(where)}: {listed(list(unplanned))}.")


def answer(found: Critical) -> Iterator[str]:
    """A row per cell: what SegCost is predicted to choose, what it chose, and what that did to success. The
    cells of one predicted sign have their interquartile means together."""
    rows = []
    of_sign: dict[str, list[tuple[ClaimEvidence, ClaimEvidence]]] = {}
    for cell, entry in found.results.plan.benchmarks.items():
        claimed = {
            finding.claim.outcome == ROUTINES: finding
            for finding in found.findings
            if finding.claim.benchmark == cell and (finding.claim.first, finding.claim.second) == ANSWERED
        }
        if len(claimed) == 2:
            known = found.predictions.get(cell, {}).get(ANSWERED[1])
            of_sign.setdefault(known.sign if known else NONE, []).append((claimed[True], claimed[False]))
            rows.append(
                (
                    f"{entry.words} (`{cell}`)",
                    NONE if known is None else f"{known.sign} ({known.preference:+.2f})",
                    *(text for routines in (True, False) for text in _against(claimed[routines])),
                )
            )
    rows += [_of_sign(sign, claimed) for sign, claimed in of_sign.items() if len(claimed) > 1]
    heads = ("what the shortcut is", "predicted", "routines", MIDDLE, "unseen tasks", MIDDLE)
    yield from table(heads, rows)


def _against(finding: ClaimEvidence) -> tuple[str, str]:
    """The difference, with the verdict unless the claim is shown, and the interquartile mean."""
    verdict = "" if finding.verdict == YES else f": {finding.verdict}"
    return points(finding.difference, finding.low, finding.high) + verdict, middle(finding)


def _of_sign(sign: str, claimed: Sequence[tuple[ClaimEvidence, ClaimEvidence]]) -> tuple[str, ...]:
    """The row of all cells with a predicted sign."""
    routines, unseen = (
        points(*interquartile([one.per_seed for one in column])) for column in zip(*claimed, strict=True)
    )
    return f"{len(claimed)} cells", sign, NONE, routines, NONE, unseen


def preferences(found: Critical) -> Iterator[str]:
    """Delta(1/2) of every cell and method, in units of reward, and Delta(p) of SegCost for other shares."""
    cells = found.results.plan.benchmarks
    methods = list(dict.fromkeys(method for known in found.predictions.values() for method in known))
    rows = [
        (f"`{method}`", *(in_table(found.predictions.get(cell, {}).get(method)) for cell in cells))
        for method in methods
    ]
    yield from table(("method", *(f"`{cell}`" for cell in cells)), rows)
    of_segcost = {cell: found.predictions[cell]["segcost"] for cell in cells if found.predictions.get(cell)}
    shares = list(dict.fromkeys(share for one in of_segcost.values() for share in one.by_share))
    yield from ("", "SegCost's preference by the share of routines, p:", "")
    by_share = [
        (f"`{cell}`", *(f"{one.by_share[share]:+.2f}" for share in shares if share in one.by_share))
        for cell, one in of_segcost.items()
    ]
    yield from table(("cell", *(f"p = {share}" for share in shares)), by_share)


def levels(found: Critical, cell: str) -> Iterator[str]:
    """A cell's table: share of routines and success of every class of tasks, by method."""
    entry = found.results.plan.benchmarks[cell]
    rows = []
    for method in found.methods(cell):
        known = found.predictions.get(cell, {}).get(method)
        routines = found.results.level(cell, method, ROUTINES)
        success = [found.results.level(cell, method, "pass_at_1", name) for name in SUCCESSES]
        seeds = next((level.seeds for level in success if level is not None), 0)
        rows.append(
            (
                FLOORS.get(method) or f"`{method}`",
                NONE if known is None else f"{known.sign} ({known.preference:+.2f})",
                str(seeds),
                _percent(routines),
                *map(_percent, success),
            )
        )
    yield from ("", f"*{entry.words}* (`{cell}`), percent (95%, other trainings and other tasks):", "")
    heads = ("method", "predicted (reward)", "seeds", "wins by routine", *SUCCESSES.values())
    yield from table(heads, rows)


def _percent(level: Level | None) -> str:
    return NONE if level is None else level.in_percent()


def summary(found: Critical) -> Iterator[str]:
    """Per question a row for each method and outcome with every cell's verdict, and a count of verdicts."""
    for question in found.results.plan.questions:
        mine = [
            each for each in found.findings if each.claim.question == question and not each.claim.of_class
        ]
        by_row: dict[tuple[str, str], dict[str, str]] = {}
        for one in mine:
            key = f"`{one.claim.second}` against `{one.claim.first}`", _outcome(found, one)
            by_row.setdefault(key, {})[one.claim.benchmark] = f"{SIGNS[one.claim.expect]} {one.verdict}"
        cells = [
            cell for cell in found.results.plan.benchmarks if any(cell in row for row in by_row.values())
        ]
        heads = ("method", "outcome", *(f"`{cell}`" for cell in cells))
        yield from ("", f"*{found.results.plan.questions[question].title}*", "")
        yield from table(
            heads, [(*key, *(row.get(cell, NONE) for cell in cells)) for key, row in by_row.items()]
        )
        counted = Counter(one.verdict for one in mine).most_common()
        yield from (
            "",
            f"{len(mine)} claims: {', '.join(f'{count} × {verdict}' for verdict, count in counted)}.",
        )


def claims(found: Critical, question: str) -> Iterator[str]:
    """A question's claims, family by family, each with its prediction and its verdict."""
    mine = [finding for finding in found.findings if finding.claim.question == question]
    yield from ("", f"*{found.results.plan.questions[question].title}*")
    for family in dict.fromkeys(finding.claim.family for finding in mine):
        of_family = [finding for finding in mine if finding.claim.family == family]
        heads = (
            "cell", "claim", "outcome", "predicted", "difference, points (95%)", MIDDLE, "seeds",
            "p, corrected", "p of signs", "verdict",
        )  # fmt: skip
        count = f"{len(of_family)} claim{'s' if len(of_family) > 1 else ''}"
        yield from ("", f"*{family[0].upper()}{family[1:]}* ({count}):", "")
        yield from table(heads, [_claim(found, finding, len(of_family)) for finding in of_family])


def _claim(found: Critical, finding: ClaimEvidence, count: int) -> tuple[str, ...]:
    claim, known = finding.claim, predicted(finding.claim, found.predictions)
    return (
        f"`{claim.benchmark}`",
        f"`{claim.second}` {SIGNS[claim.expect]} `{claim.first}`",
        _outcome(found, finding),
        NONE if known is None else f"{known.sign} ({MEANING[known.sign]})",
        points(finding.difference, finding.low, finding.high),
        middle(finding),
        f"{len(finding.per_seed)} of {finding.planned}",
        p_value(finding.corrected),
        p_value(finding.p_of_signs),
        finding.verdict + what_would_tell(finding, count),
    )


def _outcome(found: Critical, finding: ClaimEvidence) -> str:
    claim = finding.claim
    name, of_class = divided(claim.outcome or found.results.plan.benchmarks[claim.benchmark].outcome)
    shown, where = WORDS.get(name, name.replace("_", " ")), claim.of_class or of_class
    return f"{shown}, {where}" if where else shown


def compression(found: Critical) -> Iterator[str]:
    """Compression of training successes against the gap between known and unseen tasks, a row per scope."""
    every = found.agreements
    if not every:
        yield "No run with probes is recorded yet."
        return
    corrected = holm([1.0 if one.p is None else one.p for one in every])
    by_scope: dict[tuple[str, str], dict[str, str]] = {}
    for one, value in zip(every, corrected, strict=True):
        scope = one.scope if one.scope not in found.results.plan.benchmarks else f"`{one.scope}`"
        verdict = verdict_of_agreement(one, value, _complete(found, one.scope))
        p = p_value(None if one.p is None else value)
        row = by_scope.setdefault((scope, f"{one.runs} runs, {one.seeds} seeds"), {})
        row[one.measure] = verdict if one.correlation is None else f"{_correlation(one)}, p {p}: {verdict}"
    rows = [(*key, *(row.get(name, NONE) for name in MEASURES)) for key, row in by_scope.items()]
    yield from table(("over", "from", *MEASURES.values()), rows)


def _complete(found: Critical, scope: str) -> bool:
    """Whether the record has every planned run of a cell, or of all cells."""
    recorded, planned = found.results.recorded, found.results.planned
    cells = [scope] if scope in planned else list(planned)
    return all(recorded[cell] >= planned[cell] for cell in cells)


def verdict_of_agreement(one: Agreement, corrected: float, complete: bool) -> str:
    """Whether the measure predicts the gap: more bits or segments, a wider gap."""
    if not complete:
        return MISSING
    if one.p is not None and one.correlation is not None and corrected < LEVEL:
        return "yes" if one.correlation > 0 else "no, reversed"
    if one.low is not None and one.high is not None and max(-one.low, one.high) < SMALL:
        return "no, too small to matter"
    return "cannot be told"


def covered() -> Iterator[str]:
    """How often Student's interval holds the mean of trainings of which one in eight diverges."""
    by_scatter = {scatter: {seeds: coverage(seeds, scatter) for seeds in SEEDS} for scatter in SCATTERS}
    rows = [(str(seeds), *(f"{known[seeds]:.1%}" for known in by_scatter.values())) for seeds in SEEDS]
    for wanted in COVERED:
        enough = [seeds_to_cover(known, wanted) for known in by_scatter.values()]
        counted = (f"over {SEEDS[-1]}" if seeds is None else str(seeds) for seeds in enough)
        rows.append((f"seeds that {wanted:.0%} need", *counted))
    yield from table(("seeds", *(f"scatter of {scatter} points" for scatter in SCATTERS)), rows)


def choices(found: Choices) -> Iterator[str]:
    """What the start policies of every benchmark leave to choose from, and whether the conditions hold."""
    rows = [_choice(name, conditions(list(found[name].values()))) for name in OVERLAYS if name in found]
    if not rows:
        yield "No start policy is measured yet."
        return
    heads = (
        "benchmark", "seeds", "tasks won twice", "1: their wins differ in", "2: by, of a success",
        "3: correlation with length", "4: with other tasks' phrases", "all hold",
    )  # fmt: skip
    yield from table(heads, rows)
    if left := [name for name in OVERLAYS if name not in found]:
        yield from ("", f"Not measured yet: {listed(left)}.")


def logs(found: Choices) -> Iterator[str]:
    """What the successes of public logs differ in, within tasks."""
    rows = []
    for name, log in LOGS.items():
        if (one := found.get(name, {}).get(LOG)) is None or one.ways is None:
            continue
        address, _, path = log.address.partition(" ")
        ways = (str(one.ways.several), str(one.ways.equal_length), str(one.ways.differ))
        where = f"[{log.words}]({address.replace('@', '/tree/')}/{path})"
        rows.append((where, str(one.tasks), str(one.won_twice), *ways))
    heads = ("public log", "tasks", "won twice", "in several ways", "of equal length", "and unequal cost")
    yield from table(heads, rows)


def _choice(name: str, found: Conditions) -> tuple[str, ...]:
    return (
        f"`{name}`",
        str(found.policies),
        f"{found.won_twice} of {found.tasks}",
        *(NONE if one is None else one.in_words(".1%") for one in (found.differ, found.worth)),
        *(NONE if one is None else one.in_words("+.2f") for one in (found.length, found.others)),
        found.verdict,
    )


def _correlation(one: Agreement) -> str:
    interval = "" if one.low is None else f" ({one.low:+.2f} to {one.high:+.2f})"
    return f"{one.correlation:+.2f}{interval}"
