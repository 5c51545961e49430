"""``skillpress compare A B``: two evaluations against each other, paired by task.

    skillpress compare results/floor results/mine
    skillpress compare grpo-0 segcost-0 --pair grpo-1 segcost-1 --pair grpo-2 segcost-2
    skillpress compare results/one_prompt results/other_prompt --identity id

Both must have played the same tasks, each the same number of times, with the same step budget. --pair adds
further trainings of the same two methods; the tests then also cover other trainings. --identity names the
fields that make a task, so that other fields, such as a prompt, may differ. Prints the table and writes
comparison.md and comparison.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skillpress.cli.evaluations.folder import differences, splits_of
from skillpress.cli.evaluations.pairs import ID, Pair, check, fields_that_differ, read
from skillpress.core.arguments import CommandParser, output_folder
from skillpress.core.intervals import FEW_TASKS, ROUGH
from skillpress.core.seeds import derive
from skillpress.core.storage import write_json, write_text
from skillpress.evaluation.statistics import PairedTest, compare_trainings
from skillpress.evaluation.statistics.bootstrap import RESAMPLES
from skillpress.evaluation.statistics.budget import success_against_budget
from skillpress.evaluation.statistics.episodes import episode_table
from skillpress.evaluation.statistics.power import ASKED_ABOUT, what_it_shows
from skillpress.evaluation.statistics.success import self_consistency
from skillpress.pipeline.files import RESULTS

HEADS = (
    "tasks", "success", "A", "B", "B - A", "these weights", "p", "only A : only B", "McNemar p",
    "other trainings", "p", "p of signs", "divided by",
)  # fmt: skip
WHOLE = " (Pass@1)"
"""Marks the row of the whole step budget."""


@dataclass(frozen=True)
class ComparisonRow:
    """One line of the table."""

    tasks: str
    """The subset of the tasks: ``all``, ``iid`` ..."""
    success: str
    """What counts as a success."""
    first: float
    second: float
    test: PairedTest
    divided_by: str


def rows(pairs: Sequence[Pair]) -> Iterator[ComparisonRow]:
    """The rows of the table: every subset of the tasks at every step budget, and by vote."""
    first, _ = pairs[0]
    longest, votes = first.record.max_steps, first.votes
    for name in splits_of(first.tasks):
        ours, theirs = ([one.of(name) for one in side] for side in zip(*pairs, strict=True))
        compared = compare_trainings(
            ours, theirs, max_steps=longest, seed=derive(first.record.seed, "compare"), votes=votes
        )
        tables = [[episode_table(r) for r in side] for side in (ours, theirs)]
        count = sum(table.height for table in tables[0])
        counted = f"{_plural(compared.tasks, 'task')}, {_plural(len(pairs), 'training')} of each"
        episodes, verdicts = f"{count} episodes ({counted})", f"{count // votes} verdicts ({counted})"
        for test in compared.tests:
            first_share, second_share = (
                _mean([success_against_budget(t, longest).success[test.budget - 1] for t in side])
                for side in tables
            )
            whole = WHOLE if test.budget == longest else ""
            success = f"within {test.budget}{whole}"
            yield ComparisonRow(
                name, success, first=first_share, second=second_share, test=test, divided_by=episodes
            )
        if compared.verdicts is not None:
            mine, yours = (_mean([self_consistency(t, votes).mean for t in side]) for side in tables)
            yield ComparisonRow(
                name, f"SC@{votes}", first=mine, second=yours, test=compared.verdicts, divided_by=verdicts
            )


def table(pairs: Sequence[Pair], found: Sequence[ComparisonRow]) -> str:
    """The comparison in Markdown, with the meaning of every figure and of its interval."""
    first, second = pairs[0]
    lines = [f"# {second.record.label} (B) against {first.record.label} (A)", ""]
    for letter, side in zip("AB", zip(*pairs, strict=True), strict=True):
        lines.append(f"- {letter}: {', '.join(f'`{one.path}`' for one in side)}")
    lines += [f"- Tasks: {len(first.tasks)} of {first.record.played}, seed {first.record.seed}", ""]
    lines += [_line(HEADS), _line(["---"] * len(HEADS))]
    lines += [_line(_cells(row)) for row in found]
    lines += ["", *(f"- {note}" for note in notes(pairs, found))]
    return "\n".join(lines) + "\n"


def notes(pairs: Sequence[Pair], found: Sequence[ComparisonRow]) -> Iterator[str]:
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
        "McNemar: exact, on the first episode of each task (shown: tasks that only A won : only B won); "
        "only if each method has one training."
    )
    if len(pairs) == 1:
        difference = abs(next(row.test.difference for row in found if row.success.endswith(WHOLE)))
        temperature = first.record.parameters["evaluation"]["temperature"]
        said = what_it_shows(
            len(first.tasks), first.runs * first.votes, temperature, asked=difference or ASKED_ABOUT
        )
        yield f"{said.capitalize()} (Pass@1)."
    if len(pairs) > 1:
        yield (
            f"Other trainings: 95% t interval over {len(pairs)} trainings of each method and the tasks. p of "
            "signs: exact, of the trainings' signs; it is valid even if some trainings diverge."
        )
    else:
        yield "Other trainings: not tested, with one training of each method; --pair adds more."
    if len(first.tasks) < ROUGH:
        yield f"Intervals over fewer than {ROUGH} tasks are rough: they cover about 90%, not 95%."
    yield "Many tests: about one p in twenty is below 0.05 by chance alone."
    mine, theirs = ({**one.record.deciding, **one.deciding} for one in (first, second))
    differing = list(differences(mine, theirs))
    if fields := fields_that_differ(first, second):
        yield f"Tasks with the same id differ in: {', '.join(fields)}."
    yield f"The evaluations differ in (A's value first): {'; '.join(differing) or 'nothing'}."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("first", type=Path, metavar="A", help="an evaluation's folder")
    parser.add_argument("second", type=Path, metavar="B", help="another's")
    parser.add_argument("--pair", type=Path, nargs=2, action="append", default=[], metavar=("A", "B"),
                        help="another training of the same two methods; may be repeated")  # fmt: skip
    parser.add_argument("--identity", action="append", default=[], metavar="FIELD",
                        help=f"a field that makes a task, such as {ID}, while others may differ; may be "
                        "repeated")  # fmt: skip
    parser.add_argument("--output", type=output_folder, default=str(RESULTS / "comparison"), metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    pairs = [(read(one), read(other)) for one, other in ((chosen.first, chosen.second), *chosen.pair)]
    check(pairs, chosen.identity)
    found = list(rows(pairs))
    text = table(pairs, found)
    write_text(chosen.output / "comparison.md", text)
    write_json(
        chosen.output / "comparison.json",
        {"notes": list(notes(pairs, found)), "rows": [asdict(row) for row in found]},
    )
    print(text, end="")
    print(f"written to {chosen.output}")
    return 0


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares)


def _cells(row: ComparisonRow) -> list[str]:
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
        none if test.signs_p is None else f"{test.signs_p:.2g}",
        row.divided_by,
    ]


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
