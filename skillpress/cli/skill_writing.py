"""``skillpress skills --write``: its options, the rules that it drafts, and what it prints."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from skillpress.cli.reading import read, refusal_of
from skillpress.cli.rules import drafted
from skillpress.core.arguments import CommandParser, output_folder, real, whole
from skillpress.core.engine import Sampling
from skillpress.core.storage import write_json, write_text
from skillpress.core.visible import line
from skillpress.logs.draft_table import table_of
from skillpress.logs.fields import Wanted
from skillpress.logs.projection import NameProjection
from skillpress.reports.skill_files.choosing import Choosing
from skillpress.reports.skill_files.making import SkillsMade, passed_over_rows
from skillpress.reports.skill_files.teacher import Teacher
from skillpress.reports.skill_files.writing import note_page, texts_of
from skillpress.reports.skills_page.written import SkillText
from skillpress.rollouts.chat.server import ChatError, ChatServer

_LOG = logging.getLogger(__name__)

SHOWN = 20
"""The command prints at most this many skipped routines."""
LONGEST_ANSWER = 2048
"""The teacher's answer has at most this many tokens, including its thoughts."""


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
    add("--teacher", metavar="URL", help="a model that may word the name and description of each skill that "
        "is written, such as http://127.0.0.1:8000/v1; the rest stays computed")  # fmt: skip
    add("--name", default="", help="the teacher's model (default: the one that is served there)")
    add("--key-variable", default="", metavar="VARIABLE", help="environment variable with the teacher's key")
    add("--deadline", type=real(above=0), default=60.0, metavar="SECONDS", help="for one answer of the "
        "teacher; without an answer, computed words stay (default 60)")  # fmt: skip


@contextmanager
def teaching(chosen: Namespace) -> Iterator[Teacher | None]:
    """The teacher that the options name. At the end its answers are written to ``teacher.json`` in the output
    folder.

    Raises:
        UserError: the address is wrong, its key is not set, or the package that asks it is not installed.
    """
    if chosen.teacher is None or chosen.write is None:
        yield None
        return
    server = ChatServer(
        url=chosen.teacher,
        model=chosen.name,
        key_variable=chosen.key_variable,
        deadline_seconds=chosen.deadline,
    )
    server.check()
    from skillpress.rollouts.chat.client import ChatClient  # imported here, since few commands ask a model

    sampling = Sampling(temperature=0.0, max_new_tokens=LONGEST_ANSWER)
    with closing(ChatClient(server, sampling, chosen.output / "teacher_costs.jsonl")) as client:
        teacher = Teacher(chosen.name, lambda question: client.reply(question, 0, "the words of a skill"))
        try:
            client.meet()
            client.server = replace(server, model=chosen.name or client.served_model())
            teacher.model = client.server.model
        except ChatError as error:
            teacher.silent = True
            _LOG.warning("skills: the teacher gave no answer, so computed words stay: %s", error)
        yield teacher
    write_json(chosen.output / "teacher.json", [asdict(answer) for answer in teacher.answers])


def choosing(chosen: Namespace) -> Choosing:
    """The settings from the options."""
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


def skill_texts(made: SkillsMade, folder: Path, page: Path) -> list[SkillText]:
    """The written skills, for the page; their folder's manifest names the page."""
    note_page(folder, page)
    names = made.written.names
    return [
        SkillText(name, text, phrase=found.phrase, holders=found.holders)
        for name, text, found in zip(names, texts_of(folder, names), made.choice.chosen, strict=True)
    ]


def tell_made(made: SkillsMade, folder: Path, table: Path) -> None:
    """Print what was written to the folder and the first skipped routines; the table lists all of them."""
    written = made.written
    print(
        f"{folder}: {len(written.names)} skills, {len(written.added)} new, {len(written.updated)} updated, "
        f"{len(written.unchanged)} as before"
    )
    for name in written.kept:
        print(f"{folder}/{name}: not changed, because it was edited or skillpress did not write it")
    for name in written.no_longer:
        print(f"{folder}/{name}: not changed, although these logs no longer choose it")
    rows = passed_over_rows(made.choice)
    for row in rows[:SHOWN]:
        print(f"passed over: {line(str(row['routine']), 100)}: {row['why']}")
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} others: {table} lists all")
