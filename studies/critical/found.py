"""What was found, in sentences: each follows the verdicts of the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.made import bullet, prose
from docs.words import points
from studies.critical.predictions import BASELINE
from studies.critical.results import ROUTINES, UNSEEN, Critical
from studies.statistics.contrasts import MISSING, YES, ClaimEvidence

SEGCOST = "segcost"
SUCCESS = ("pass_at_1", UNSEEN)


def critical_in_short(found: Critical) -> Iterator[str]:
    """The README's sentences; one line while runs are missing."""
    more, less = (_claims(found, BASELINE, SEGCOST, expect) for expect in ("higher", "lower"))
    if not all(more) or not all(less) or _missing(*more, *less):
        yield "Runs of the critical experiment are missing."
        return
    yield from prose(
        "Where shared routines are predicted to need fewer phrases, SegCost chooses them "
        f"{_in_cells(more[0])}; it wins {_span(more[1])} points more unseen tasks than GRPO",
        f"({shown(more[1])}).",
        "Where the shortcut is predicted to need fewer, SegCost chooses the shortcut "
        f"{_in_cells(less[0])}, and wins {_span(less[1])} points fewer ({shown(less[1])}).",
    )


def found_bullets(found: Critical) -> Iterator[str]:
    """The page's bullets about planned comparisons with plain GRPO."""
    for words, expect, least in (
        ("Does SegCost choose routines where it should, and does success follow?", "higher", "more"),
        ("Where does it harm?", "lower", "fewer"),
    ):
        routines, success = _claims(found, BASELINE, SEGCOST, expect)
        if not _missing(routines, success):
            yield from bullet(
                f"**{words}** It is predicted to have {least} of them than plain GRPO in",
                f"{len(routines)} cells, and has {_in_cells(routines)}: by {_span(routines)} points.",
                f"Success on unseen tasks differs likewise, by {_span(success)} points ({shown(success)}).",
            )
    for method, words in (
        (SEGCOST, "And where nothing tells the kinds apart (`alike`)?"),
        ("constant", "Does a constant penalty do anything in any cell?"),
    ):
        routines, success = _claims(found, BASELINE, method, "same")
        if not _missing(routines, success):
            margins = [f"{100 * claims[0].margin:g}" for claims in (routines, success)]
            yield from bullet(
                f"**{words}** The plan claims that `{method}` is within {margins[0]} points of routines and",
                f"{margins[1]} of success of plain GRPO. Routines: {shown(routines)}.",
                f"Success on unseen tasks: {shown(success)}.",
            )


def changes_of_segcost(found: Critical) -> Iterator[str]:
    """A bullet about each method that changes one thing of SegCost."""
    for method, words in (
        ("segcost_no_buffer", "Without the buffer"),
        ("per_class", "A dictionary per class"),
        ("centred", "A penalty centred in its group"),
        ("bits", "A price in bits"),
        ("each_task_once", "Every pair of task and sequence counted once"),
        ("decayed", "A decaying corpus"),
    ):
        if line := _beside_segcost(found, method):
            yield from bullet(f"**{words}** (`{method}`), less SegCost: {line}")


def _beside_segcost(found: Critical, method: str) -> str:
    """The extreme differences of means in both outcomes, and the verdicts on what was planned."""
    told = []
    for outcome, words in (((ROUTINES,), "routines"), (SUCCESS, "success on unseen tasks")):
        of_cells = {}
        for cell, methods in found.results.plan.chosen().items():
            one, other = (found.results.level(cell, each, *outcome) for each in (SEGCOST, method))
            if method in methods and one and other:
                of_cells[cell] = other.mean - one.mean
        if not of_cells:
            return ""
        low, high = (min(of_cells, key=of_cells.__getitem__), max(of_cells, key=of_cells.__getitem__))
        told.append(
            f"{words} {points(of_cells[low])} (`{low}`) to {points(of_cells[high])} points (`{high}`)"
        )
    claims = [
        one
        for one in found.findings
        if (one.claim.first, one.claim.second) == (SEGCOST, method) and not one.claim.of_class
    ]
    planned = f"Planned claims: {shown(claims)}." if claims else "No claim about it was planned."
    return f"{'; '.join(told)}. {planned}"


def _claims(
    found: Critical, first: str, second: str, expect: str
) -> tuple[list[ClaimEvidence], list[ClaimEvidence]]:
    """The claims about routines, and those about success."""
    mine = [
        one
        for one in found.findings
        if (one.claim.first, one.claim.second, one.claim.expect) == (first, second, expect)
        and not one.claim.of_class
    ]
    return [one for one in mine if one.claim.outcome == ROUTINES], [
        one for one in mine if one.claim.outcome != ROUTINES
    ]


def _missing(*groups: Sequence[ClaimEvidence]) -> bool:
    """Whether a group has no claim, or one whose runs are missing."""
    return not all(groups) or any(one.verdict == MISSING for claims in groups for one in claims)


def _in_cells(claims: Sequence[ClaimEvidence]) -> str:
    held = [one for one in claims if one.verdict == YES]
    if len(held) < len(claims):
        return f"in {len(held)} of {len(claims)} cells"
    return {1: "in the one cell", 2: "in both cells"}.get(len(claims), f"in all {len(claims)} cells")


def differences(claims: Sequence[ClaimEvidence]) -> Iterator[str]:
    """A sentence about every pair of methods that has runs: its differences, outcome by outcome."""
    for first, second in dict.fromkeys((one.claim.first, one.claim.second) for one in claims):
        told: dict[str, list[str]] = {}
        for one in claims:
            if (one.claim.first, one.claim.second) == (first, second) and one.difference is not None:
                outcome = "routines" if one.claim.outcome == ROUTINES else one.claim.family
                difference = points(one.difference, one.low, one.high)
                told.setdefault(outcome, []).append(f"{difference} in `{one.claim.benchmark}`")
        if told:
            by_outcome = "; ".join(f"{outcome}: {', '.join(of_cells)}" for outcome, of_cells in told.items())
            yield f"`{second}` less `{first}`, {by_outcome}."


def shown(claims: Sequence[ClaimEvidence]) -> str:
    """How many claims hold, and each other one with its verdict and its interval."""
    others = [one for one in claims if one.verdict != YES]
    count = f"{len(claims) - len(others)} of {len(claims)} shown"
    if not others:
        count = {1: "shown", 2: "both shown"}.get(len(claims), f"all {len(claims)} shown")
    told = (
        f"{one.verdict} in `{one.claim.benchmark}` ({'routines ' if one.claim.outcome == ROUTINES else ''}"
        f"{points(one.difference, one.low, one.high).replace(' (', ', ').removesuffix(')')})"
        for one in others
    )
    return "; ".join([count, *told])


def _span(claims: Sequence[ClaimEvidence]) -> str:
    sizes = [abs(100 * one.difference) for one in claims if one.difference is not None]
    return f"{min(sizes):.0f} to {max(sizes):.0f}" if sizes else "unknown"
