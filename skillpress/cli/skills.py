"""``skillpress skills TRACES...``: the routines of an agent, found in its logs.

    skillpress skills --look logs/
    skillpress skills logs/ --success 'extra.reward>=1'
    skillpress skills chat.jsonl --rules rules.yaml --output results/skills
    skillpress skills last_week.jsonl --compare this_week.jsonl
    skillpress skills sessions/ --write .claude/skills

Reads the logs of most agents (docs/log_formats.md lists the formats), recognises each by its content, and
searches folders. --look prints what was understood and writes nothing. A step's skill is the tool that it
calls, or the name that a table of rules gives it (`skillpress rules` drafts one). Writes skills.html, which
needs no network, and next to it dictionary.json, phrases.csv, contrasts.csv and, if there are bad lines,
bad_lines.csv. --write also makes a folder with a SKILL.md for each routine that pays for itself, which coding
agents read; passed_over.csv says why the others have none.
"""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from skillpress.cli import layers
from skillpress.cli.look import in_five_lines, whole
from skillpress.cli.reading import (
    NotUnderstoodError,
    add_field_options,
    add_reading_options,
    check_understood,
    check_used,
    read,
    tell_warnings,
    wanted_by,
)
from skillpress.cli.skill_writing import (
    add_writing_options,
    choosing,
    draft_rules,
    skill_texts,
    teaching,
    tell_made,
)
from skillpress.core.arguments import CommandParser, output_folder
from skillpress.core.arguments import whole as whole_number
from skillpress.core.errors import UserError
from skillpress.core.storage import atomic_path, write_text
from skillpress.core.visible import line
from skillpress.environments.calls.rules import read_rules
from skillpress.evaluation.analysis.mdl_report import ARROW
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log
from skillpress.logs.own_rules import find_rules
from skillpress.logs.projection import NameProjection, TraceProjection
from skillpress.pipeline.files import RESULTS
from skillpress.reports.skill_files.making import SkillsMade, make_skills, passed_over_rows
from skillpress.reports.skills_page.comparison import GroupComparison
from skillpress.reports.skills_page.content import Content, Settings, describe
from skillpress.reports.skills_page.episodes import episodes
from skillpress.reports.skills_page.page import render
from skillpress.reports.skills_page.written import beside_runs
from skillpress.skills.dictionary import save_dictionary

_LOG = logging.getLogger(__name__)

BAD_TOLD = 3
"""The command prints at most this many bad lines."""


SLOW_TRACES = 500
"""The command suggests numba for logs with more traces than this."""


class OptionError(UserError):
    """Options that contradict each other."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    settings, viewer = _settings(chosen), _address(chosen.viewer)
    named = wanted_by(chosen)
    if chosen.write is not None and not chosen.look:
        draft_rules(chosen, named)
    projection = _projection(chosen)
    projected_by = f"the rules of {chosen.rules}" if chosen.rules else "the names of tools or actions"
    if chosen.look:
        return _look(chosen, projection, projected_by, named)
    log, wanted = read("skills", chosen.traces, projection, named, chosen.most_bad)
    check_understood(log, projection, chosen.words)
    compared = _compared(chosen, log, named)
    check_used(log, named)
    if len(log) > SLOW_TRACES and layers.missing("fast"):
        _LOG.warning(f"skills: {len(log):,} traces take minutes without numba: {layers.remedy('fast')}")
    content = describe(log, settings, compared)
    for text in [*_answered(content, chosen), *in_five_lines(log, projected_by)]:
        print(text)
    made = _made(chosen, log, wanted, projection)
    texts = skill_texts(made, chosen.write, chosen.output / "skills.html") if made is not None else []
    title = ", ".join(path.name or str(path) for path in chosen.traces[:3])
    page = render(
        content,
        episodes(content, projection, wanted),
        title=title + (" and others" if len(chosen.traces) > 3 else ""),
        projected_by=projected_by,
        viewer=viewer,
        written=beside_runs(texts, log, wanted, projection),
    )
    _write(chosen.output, content, page)
    _tell(chosen.output, content)
    if made is not None:
        table = chosen.output / "passed_over.csv"
        _table(table, passed_over_rows(made.choice), PASSED_OVER)
        tell_made(made, chosen.write, table)
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    add = parser.add_argument
    add_reading_options(parser)
    add_field_options(parser)
    add("--look", action="store_true", help="print what was understood, and write nothing")
    add("--words", choices=("first", "none"), help="the skill of steps in words: their first word, also if "
        "they read like prose, or none")  # fmt: skip
    add("--rules", metavar="RULES.yaml", help="a table that names steps, or an environment of ours with one")
    add("--output", type=output_folder, default=str(RESULTS / "skills"), metavar="FOLDER")
    add("--between", nargs=2, metavar=("A", "B"), help="the versions to compare (default: the most frequent)")
    add("--compare", type=Path, action="append", default=[], metavar="OTHER_TRACES",
        help="traces of another version; may be repeated")  # fmt: skip
    add("--search", choices=("refined", "greedy"), default="refined")
    add(
        "--longest",
        type=whole_number(2, 16),
        default=6,
        metavar="L",
        help="skills in a routine at most, 2 to 16 (default 6)",
    )
    add(
        "--longest-trace",
        type=whole_number(1),
        metavar="T",
        help="skills of a trace that the certificate counts",
    )
    add_writing_options(parser)
    add("--viewer", metavar="URL", help="where `skillpress view` serves the same rollout files")
    return parser


def _settings(chosen: Namespace) -> Settings:
    if chosen.between and chosen.compare:
        raise OptionError(
            "--between and --compare cannot be combined: --between chooses two versions of one log, "
            "--compare adds a second log; give one of them"
        )
    return Settings(
        chosen.search,
        chosen.longest,
        longest_trace=chosen.longest_trace,
        between=tuple(chosen.between) if chosen.between else None,
        logs=_names(chosen.traces, chosen.compare),
    )


def _names(ours: Sequence[Path], others: Sequence[Path]) -> tuple[str, str]:
    """The names of two logs: their file names, with the folders if the file names are equal."""
    for name in (lambda path: path.name or str(path), str):
        first, second = (
            ", ".join(line(name(path), 80) for path in paths[:3]) + (" and others" if len(paths) > 3 else "")
            for paths in (ours, others)
        )
        if first != second:
            return first, second
    return f"{first} (TRACES)", f"{second} (--compare)"


def _answered(content: Content, chosen: Namespace) -> Iterator[str]:
    """The answer to the comparison that was asked for, in one line."""
    versions = content.versions
    if versions is None or not (chosen.between or chosen.compare):
        return
    if versions.answer is not None:
        yield versions.answer.text
    else:
        yield (
            f"success: {' and '.join(versions.comparison.names[::-1])} cannot be compared, because one has "
            "no known outcomes; --success, --outcomes or --last-call says which traces succeeded"
        )


def _address(viewer: str | None) -> str | None:
    if viewer is None:
        return None
    if urlsplit(viewer).scheme not in ("http", "https") or not urlsplit(viewer).netloc:
        raise OptionError(f"--viewer {viewer}: must be an address such as http://127.0.0.1:8000/")
    return viewer.split("#")[0]


def _projection(chosen: Namespace) -> TraceProjection:
    if chosen.rules is not None and chosen.words is not None:
        raise OptionError("--words has no effect, because --rules names all steps: leave --words out")
    return NameProjection(chosen.words) if chosen.rules is None else read_rules(find_rules(chosen.rules))


def _look(chosen: Namespace, projection: TraceProjection, projected_by: str, named: Wanted) -> int:
    """Print what was understood, and any error that would stop the command."""
    log, _ = read("skills", chosen.traces, projection, named, most_bad=1.0)
    check_used(log, named)
    try:
        check_understood(log, projection, chosen.words)
    except NotUnderstoodError as error:
        log.warnings.append(f"skillpress skills stops here: {error}")
    if log.bad_lines > chosen.most_bad * (log.good_lines + log.bad_lines):
        log.warnings.append(
            f"skillpress skills stops here: more bad lines than --most-bad {chosen.most_bad:g} allows"
        )
    for text in whole(log, projection, projected_by):
        print(text)
    return 0


def _compared(chosen: Namespace, log: Log, named: Wanted) -> Log | None:
    """The other log, read by the same rules; its warnings are added to the first log's."""
    if not chosen.compare:
        return None
    projection = _projection(chosen)
    other, _ = read("skills", chosen.compare, projection, named, chosen.most_bad)
    check_understood(other, projection, chosen.words)
    log.warnings += [f"the traces compared with: {warning}" for warning in other.warnings]
    return other


def _made(chosen: Namespace, log: Log, wanted: Wanted, projection: TraceProjection) -> SkillsMade | None:
    """The skills that --write asks for."""
    if chosen.write is None:
        return None
    with teaching(chosen) as teacher:
        return make_skills(log, wanted, projection, choosing(chosen), chosen.write, teacher=teacher)


def _write(folder: Path, content: Content, page: str) -> None:
    write_text(folder / "skills.html", page)
    save_dictionary(folder / "dictionary.json", content.dictionary)
    _table(
        folder / "phrases.csv",
        [
            {
                "phrase": ARROW.join(routine.phrase),
                "length": len(routine.phrase),
                "uses": routine.uses,
                "traces": routine.traces,
                "bits_saved": routine.bits_saved,
            }
            for routine in content.routines
        ],
        PHRASES,
    )
    _table(folder / "contrasts.csv", list(_contrasts(content)), CONTRASTS)
    bad = folder / "bad_lines.csv"
    bad.unlink(missing_ok=True)
    if content.log.bad:
        rows = [{"file": b.file, "line": b.number, "why": b.why} for b in content.log.bad]
        _table(bad, rows, {"file": pl.String, "line": pl.Int64, "why": pl.String})


PHRASES = {
    "phrase": pl.String, "length": pl.Int64, "uses": pl.Int64, "traces": pl.Int64, "bits_saved": pl.Float64,
}  # fmt: skip
PASSED_OVER = {
    "routine": pl.String, "why": pl.String, "uses": pl.Int64, "runs": pl.Int64, "tasks": pl.Int64,
    "bits_saved": pl.Float64,
}  # fmt: skip
CONTRASTS = {
    "compared": pl.String, "phrase": pl.String, "first": pl.Float64, "second": pl.Float64,
    "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "separates": pl.Boolean,
}  # fmt: skip


def _contrasts(content: Content) -> Iterator[dict[str, object]]:
    compared: list[GroupComparison] = [] if content.success is None else [content.success]
    compared += [] if content.versions is None else [content.versions.comparison]
    for comparison in compared:
        for contrast in comparison.contrasts:
            yield {
                "compared": f"{comparison.names[0]} - {comparison.names[1]}",
                "phrase": ARROW.join(contrast.phrase),
                **{name: getattr(contrast, name) for name in CONTRASTS if name not in ("compared", "phrase")},
            }


def _table(path: Path, rows: list[dict[str, object]], schema: dict[str, type[pl.DataType]]) -> None:
    """Write a table as CSV; halves of surrogate pairs cannot be encoded, so they become question marks."""
    clean = [
        {
            key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for key, value in row.items()
        }
        for row in rows
    ]
    with atomic_path(path) as temporary:
        pl.DataFrame(clean, schema=schema, orient="row").write_csv(temporary)


def _tell(folder: Path, content: Content) -> None:
    log = content.log
    for bad in log.bad[:BAD_TOLD]:
        _LOG.warning("skills: %s, line %d: %s", bad.file, bad.number, bad.why[:200])
    if log.bad_lines:
        lines = "1 bad line was" if log.bad_lines == 1 else f"{log.bad_lines:,} bad lines were"
        _LOG.warning("skills: %s passed over; %s/bad_lines.csv names them", lines, folder)
    tell_warnings("skills", log)
    of = "successes" if content.of_successes else "traces"
    routines = "routine" if len(content.routines) == 1 else "routines"
    print(
        f"{len(content.routines)} {routines} of {len(content.fitted):,} {of}: "
        f"{content.savings.singletons:.1f} bits each without, {content.savings.dictionary:.1f} with"
    )
    if content.success is not None:
        found = content.success
        print(f"{len(found.separating)} of {len(found.contrasts)} phrases separate successes from failures")
    print(f"written to {folder}; open {folder}/skills.html")


if __name__ == "__main__":
    sys.exit(main())
