"""``skillpress compare A B``: two evaluations against each other, paired by task.

    skillpress compare results/floor results/mine
    skillpress compare grpo-0 segcost-0 --pair grpo-1 segcost-1 --pair grpo-2 segcost-2

Both must have played the same tasks, each the same number of times, with the same step budget. --pair adds
further trainings of the same two methods; the tests then also say what would hold for other trainings. Prints
the table and writes comparison.md and comparison.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from skillpress.console.evaluations.comparison_table import Row, notes, table
from skillpress.console.evaluations.folder import splits_of
from skillpress.console.evaluations.pairs import Pair, check, read
from skillpress.core.arguments import Parser
from skillpress.core.seeds import derive
from skillpress.core.storage import write_json, write_text
from skillpress.measure.evaluation import compare_trainings
from skillpress.measure.evaluation.budget import success_against_budget
from skillpress.measure.evaluation.episodes import episode_table
from skillpress.measure.evaluation.success import self_consistency
from skillpress.pipeline.files import RESULTS


def rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    """The rows of the table: every part of the tasks at every step budget, and by vote."""
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
            whole = " (Pass@1)" if test.budget == longest else ""
            success = f"within {test.budget}{whole}"
            yield Row(name, success, first_share, second_share, test, divided_by=episodes)
        if compared.verdicts is not None:
            mine, yours = (_mean([self_consistency(t, votes).mean for t in side]) for side in tables)
            yield Row(name, f"SC@{votes}", mine, yours, compared.verdicts, divided_by=verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(description=__doc__)
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


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares)
