"""``skillpress skills --write``: its options, the rules that it drafts, and what it prints."""

from __future__ import annotations

from argparse import Namespace

from skillpress.cli.reading import read, refusal_of
from skillpress.cli.rules import drafted
from skillpress.core.arguments import CommandParser, output_folder, whole
from skillpress.core.storage import write_text
from skillpress.core.visible import line
from skillpress.logs.draft_table import table_of
from skillpress.logs.fields import Wanted
from skillpress.logs.projection import NameProjection
from skillpress.reports.skill_files.choosing import Choosing
from skillpress.reports.skill_files.making import Made, passed_over_rows

SHOWN = 20
"""Rows of the table of passed routines that are printed."""


def add_writing_options(parser: CommandParser) -> None:
    """The options of --write."""
    add = parser.add_argument
    add("--write", type=output_folder, metavar="DIR", help="write a SKILL.md for each routine that pays for "
        "itself; without --rules the steps are named by drafted rules")  # fmt: skip
    add("--min-runs", type=whole(2), default=3, metavar="N", help="runs that a skill is used in at least "
        "(default 3)")  # fmt: skip
    add(
        "--max",
        type=whole(1),
        default=20,
        metavar="N",
        help="skills that --write writes at most (default 20)",
    )


def choosing(chosen: Namespace) -> Choosing:
    """The options as settings."""
    return Choosing(min_runs=chosen.min_runs, most=chosen.max, longest=chosen.longest, search=chosen.search)


def draft_rules(chosen: Namespace, named: Wanted) -> None:
    """Name the steps by drafted rules unless the options say how: a session's calls of ``Bash`` are then the
    commands that it ran. The table is kept in the output folder, to be edited."""
    if chosen.rules is not None or chosen.words is not None:
        return
    names = NameProjection()
    log, wanted = read("skills", chosen.traces, names, named, chosen.most_bad)
    if refusal_of(log, names.words) is not None:
        return
    draft = drafted(log, wanted)
    if draft.tools:
        chosen.rules = str(chosen.output / "rules.yaml")
        write_text(chosen.output / "rules.yaml", table_of(draft, line(chosen.traces[0].name, 60)))


def tell_made(made: Made, folder: object) -> None:
    """Print what was written and what was passed over."""
    written = made.written
    print(
        f"{folder}: {len(made.names)} skills, {len(written.added)} new, {len(written.updated)} updated, "
        f"{len(written.unchanged)} as before"
    )
    for name in written.kept:
        print(f"{folder}/{name}: left as it is, since it was edited or is not ours")
    for name in written.no_longer:
        print(f"{folder}/{name}: these logs no longer choose it; it is left as it is")
    rows = passed_over_rows(made.choice)
    for row in rows[:SHOWN]:
        print(f"passed over: {line(str(row['routine']), 100)}: {row['why']}")
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} others: passed_over.csv lists all")
