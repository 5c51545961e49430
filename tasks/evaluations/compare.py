"""``skillpress compare A B``: two evaluations against each other, paired by task.

    skillpress compare results/floor results/mine
    skillpress compare grpo-0 segcost-0 --pair grpo-1 segcost-1 --pair grpo-2 segcost-2

Both must have played the same tasks, each the same number of times, within the same step budget. With --pair,
further trainings of the same two methods, the tests also say what would hold for other trainings. Prints the
table and writes comparison.md and comparison.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.errors import UserError
from skillpress.evaluation import PairedTest, compare_trainings
from skillpress.evaluation.bootstrap import RESAMPLES
from skillpress.evaluation.budget import success_against_budget
from skillpress.evaluation.episodes import episode_table, evaluation_steps
from skillpress.evaluation.success import self_consistency
from skillpress.seeds import derive
from skillpress.storage import write_json, write_text
from skillpress.trajectory import Task
from tasks.evaluations.folder import EvaluationFolder, EvaluationRecord, differences
from tasks.evaluations.parameters import without_idle
from tasks.evaluations.summary import splits_of
from tasks.files import RESULTS

HEADS = (
    "tasks", "success", "A", "B", "B - A", "these weights", "p", "only A : only B", "McNemar p",
    "other trainings", "p", "divided by",
)  # fmt: skip


class ComparisonError(UserError):
    """These evaluations cannot be compared; the message says which and why."""


@dataclass(frozen=True)
class Finished:
    """One evaluation, read back."""

    path: Path
    record: EvaluationRecord
    tasks: tuple[Task, ...]
    rollouts: pl.LazyFrame

    @property
    def votes(self) -> int:
        """k."""
        return int(self.record.parameters["evaluation"]["votes"])

    @property
    def runs(self) -> int:
        """Independent runs."""
        return int(self.record.parameters["evaluation"]["runs"])

    @property
    def deciding(self) -> dict[str, Any]:
        """The parameters without those that decide no episode."""
        return without_idle(self.record.parameters)

    def of(self, part: str) -> pl.LazyFrame:
        """The steps in a part of the tasks."""
        tasks = splits_of(self.tasks)[part]
        return self.rollouts.filter(pl.col("task_id").is_in([task.task_id for task in tasks]))


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


Pair = tuple[Finished, Finished]


def read(path: Path) -> Finished:
    """The evaluation of a folder.

    Raises:
        StorageError: there is none, or it is damaged or unfinished.
    """
    folder = EvaluationFolder(path)
    return Finished(path, folder.read(), tuple(folder.tasks()), folder.rollouts())


def check(pairs: Sequence[Pair]) -> None:
    """Refuse what is no comparison of the same thing.

    Raises:
        ComparisonError: the environment, how often each task was played, or the step budget differ; or,
            within a pair, the tasks.
    """
    reference = pairs[0][0]
    for other in (one for pair in pairs for one in pair):
        for what, mine, theirs in (
            ("the environment", reference.record.environment, other.record.environment),
            ("k, episodes of each task in a run", reference.votes, other.votes),
            ("the number of runs", reference.runs, other.runs),
            ("the step budget T", reference.record.max_steps, other.record.max_steps),
        ):
            if mine != theirs:
                raise ComparisonError(
                    f"{reference.path} and {other.path}: {what} is {mine} in one and {theirs} in the other"
                )
    for first, second in pairs:
        check_tasks(first, second)


def check_tasks(first: Finished, second: Finished) -> None:
    """Refuse an evaluation beside itself, and two of different tasks.

    Raises:
        ComparisonError: naming a task that one alone has played.
    """
    if first.path.resolve() == second.path.resolve():
        raise ComparisonError(f"{first.path} is compared with itself; name two evaluations")
    mine, theirs = (
        {(task.task_id, repr(sorted(task.spec.items()))) for task in one.tasks} for one in (first, second)
    )
    if unlike := mine ^ theirs:
        raise ComparisonError(
            f"{first.path} and {second.path} did not play the same tasks ({len(unlike)} are in one alone, "
            f"such as {min(unlike)[0]}); evaluate both with the same --environment, --tasks and --seed"
        )


def rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    """The table: every part of the tasks at every step budget, and by vote."""
    first, _ = pairs[0]
    longest, votes = first.record.max_steps, first.votes
    for name in splits_of(first.tasks):
        ours, theirs = ([one.of(name) for one in side] for side in zip(*pairs, strict=True))
        compared = compare_trainings(
            ours, theirs, max_steps=longest, seed=derive(first.record.seed, "compare"), votes=votes
        )
        tables = [[episode_table(evaluation_steps(r)) for r in side] for side in (ours, theirs)]
        count = sum(table.height for table in tables[0])
        counted = f"{_plural(compared.tasks, 'task')}, {_plural(len(pairs), 'training')} of each"
        episodes, verdicts = f"{count} episodes ({counted})", f"{count // votes} verdicts ({counted})"
        for test in compared.tests:
            shares = [
                _mean([success_against_budget(t, longest).success[test.budget - 1] for t in side])
                for side in tables
            ]
            whole = " (Pass@1)" if test.budget == longest else ""
            yield Row(name, f"within {test.budget}{whole}", shares[0], shares[1], test, episodes)
        if compared.verdicts is not None:
            shares = [_mean([self_consistency(t, votes).mean for t in side]) for side in tables]
            yield Row(name, f"SC@{votes}", shares[0], shares[1], compared.verdicts, verdicts)


def table(pairs: Sequence[Pair], found: Sequence[Row]) -> str:
    """The comparison in Markdown, with what every figure is and what its interval covers."""
    first, second = pairs[0]
    lines = [f"# {second.record.label} (B) against {first.record.label} (A)", ""]
    for letter, side in zip("AB", zip(*pairs, strict=True), strict=True):
        lines.append(f"- {letter}: {', '.join(f'`{one.path}`' for one in side)}")
    lines += [f"- Tasks: {len(first.tasks)} of {first.record.environment}, seed {first.record.seed}", ""]
    lines += [_line(HEADS), _line(["---"] * len(HEADS))]
    lines += [_line(_cells(row)) for row in found]
    lines += ["", *(f"- {note}" for note in notes(pairs))]
    return "\n".join(lines) + "\n"


def notes(pairs: Sequence[Pair]) -> Iterator[str]:
    """How the table is to be read, a sentence each."""
    first, second = pairs[0]
    yield (
        "Success within t steps is the share of episodes that were won in at most t steps; the last t is the "
        "whole budget. SC@k counts a task as solved in a run when more than half of its k episodes were won."
    )
    yield (
        f"These weights: 95% interval and p of a bootstrap over tasks ({RESAMPLES:,} resamples), each task "
        "with all its episodes. It covers other tasks of the same kind, for these same weights; it says "
        "nothing about another training, prompt or temperature."
    )
    yield (
        "McNemar: exact, on the first episode of each task (shown: tasks that only A won : only B won); made "
        "for one training of each alone."
    )
    if len(pairs) > 1:
        yield f"Other trainings: 95% t interval over {len(pairs)} trainings of each method and the tasks."
    else:
        yield "Other trainings: not tested, since each method is here with one training; --pair adds more."
    yield "Many tests: of twenty, one falls below 0.05 by luck alone."
    differing = list(differences(*({**one.record.deciding, **one.deciding} for one in (first, second))))
    yield f"In what the evaluations differ (A's value first): {'; '.join(differing) or 'nothing'}."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=Path, metavar="A", help="an evaluation's folder")
    parser.add_argument("second", type=Path, metavar="B", help="another's")
    parser.add_argument("--pair", type=Path, nargs=2, action="append", default=[], metavar=("A", "B"),
                        help="another training of the same two methods; may be repeated")  # fmt: skip
    parser.add_argument("--output", type=Path, default=RESULTS / "comparison", metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    pairs = [(read(one), read(other)) for one, other in ((chosen.first, chosen.second), *chosen.pair)]
    check(pairs)
    found = list(rows(pairs))
    text = table(pairs, found)
    write_text(chosen.output / "comparison.md", text)
    write_json(
        chosen.output / "comparison.json",
        {"notes": list(notes(pairs)), "rows": [asdict(row) for row in found]},
    )
    print(text, end="")
    print(f"written to {chosen.output}")
    return 0


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


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares)


if __name__ == "__main__":
    sys.exit(main())
