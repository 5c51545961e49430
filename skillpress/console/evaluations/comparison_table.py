"""A comparison as a table in Markdown, with the meaning of every figure and of its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpress.console.evaluations.folder import differences
from skillpress.console.evaluations.pairs import Pair
from skillpress.core.intervals import FEW_TASKS, ROUGH
from skillpress.measure.evaluation import PairedTest
from skillpress.measure.evaluation.bootstrap import RESAMPLES

HEADS = (
    "tasks", "success", "A", "B", "B - A", "these weights", "p", "only A : only B", "McNemar p",
    "other trainings", "p", "divided by",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    tasks: str
    """The part of the tasks: ``all``, ``iid`` ..."""
    success: str
    """What counts as a success."""
    first: float
    second: float
    test: PairedTest
    divided_by: str


def table(pairs: Sequence[Pair], found: Sequence[Row]) -> str:
    """The comparison in Markdown, with the meaning of every figure and of its interval."""
    first, second = pairs[0]
    lines = [f"# {second.record.label} (B) against {first.record.label} (A)", ""]
    for letter, side in zip("AB", zip(*pairs, strict=True), strict=True):
        lines.append(f"- {letter}: {', '.join(f'`{one.path}`' for one in side)}")
    lines += [f"- Tasks: {len(first.tasks)} of {first.record.played}, seed {first.record.seed}", ""]
    lines += [_line(HEADS), _line(["---"] * len(HEADS))]
    lines += [_line(_cells(row)) for row in found]
    lines += ["", *(f"- {note}" for note in notes(pairs))]
    return "\n".join(lines) + "\n"


def notes(pairs: Sequence[Pair]) -> Iterator[str]:
    """How to read the table, one sentence each."""
    first, second = pairs[0]
    yield (
        "Success within t steps is the share of episodes that were won in at most t steps; the last t is the "
        "whole budget. SC@k counts a task as solved in a run when more than half of its k episodes were won."
    )
    yield (
        f"These weights: 95% interval and p of a bootstrap over tasks ({RESAMPLES:,} resamples; of Student's "
        f"t below {FEW_TASKS} tasks), each task with all its episodes. It covers other tasks of the same "
        "kind, for these same weights; it says nothing about another training, prompt or temperature."
    )
    yield (
        "McNemar: exact, on the first episode of each task (shown: tasks that only A won : only B won); made "
        "for one training of each alone."
    )
    if len(pairs) > 1:
        yield f"Other trainings: 95% t interval over {len(pairs)} trainings of each method and the tasks."
    else:
        yield "Other trainings: not tested, since each method is here with one training; --pair adds more."
    if len(first.tasks) < ROUGH:
        yield f"Intervals over fewer than {ROUGH} tasks are rough: they hold in about 90%, not 95%."
    yield "Many tests: of twenty, one falls below 0.05 by luck alone."
    mine, theirs = ({**one.record.deciding, **one.deciding} for one in (first, second))
    differing = list(differences(mine, theirs))
    yield f"In what the evaluations differ (A's value first): {'; '.join(differing) or 'nothing'}."


def _cells(row: Row) -> list[str]:
    test, none = row.test, "-"
    others = test.trainings
    return [
        row.tasks,
        row.success,
        f"{row.first:.1%}",
        f"{row.second:.1%}",
        _points(test.difference),
        f"{_points(test.low)} to {_points(test.high)}",
        f"{test.bootstrap_p:.2g}",
        none if test.only_first is None else f"{test.only_first} : {test.only_second}",
        none if test.mcnemar_p is None else f"{test.mcnemar_p:.2g}",
        none if others is None else f"{_points(others.low)} to {_points(others.high)}",
        none if others is None else f"{others.p:.2g}",
        row.divided_by,
    ]


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
