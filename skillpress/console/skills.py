"""``skillpress skills TRACES...``: the routines of an agent, found in its logs.

    skillpress skills logs/ --success 'extra.reward>=1'
    skillpress skills chat.jsonl --rules rules.yaml --output results/skills
    skillpress skills this_week.jsonl --compare last_week.jsonl

Reads ATIF 1.x, chat completions with tool calls (JSON lines), MLflow traces and our own rollout files; it
recognises each by its content and searches folders. A step's skill is the tool that it calls, or the name
that a table of rules gives it (docs/skills_of_any_agent.md has its form). Writes skills.html, which needs no
network, and beside it dictionary.json, phrases.csv, contrasts.csv and, if there are bad lines, bad_lines.csv.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from skillpress.console import layers
from skillpress.core.arguments import Parser, real, whole
from skillpress.core.errors import UserError
from skillpress.core.storage import atomic_path, write_text
from skillpress.doors.traces.fields import Wanted, success_field
from skillpress.doors.traces.log import Log, read_log
from skillpress.doors.traces.projection import NameProjection, TraceProjection
from skillpress.doors.traces.rules import find_rules, read_rules
from skillpress.measure.analysis.mdl_report import ARROW
from skillpress.pipeline import exit_codes
from skillpress.pipeline.files import RESULTS
from skillpress.show.skills_page.comparison import Comparison
from skillpress.show.skills_page.content import Content, Settings, describe
from skillpress.show.skills_page.episodes import episodes
from skillpress.show.skills_page.page import render
from skillpress.skills.dictionary import save_dictionary

BAD_TOLD = 3
"""Bad lines that the terminal shows."""


SLOW_TRACES = 500
"""The number of traces above which machine code is worth installing."""


class OptionError(UserError):
    """Options that contradict each other."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    settings, viewer = _settings(chosen), _address(chosen.viewer)
    projection = NameProjection() if chosen.rules is None else read_rules(find_rules(chosen.rules))
    wanted = Wanted(
        success=None if chosen.success is None else success_field(chosen.success),
        task=chosen.task,
        version=chosen.version,
        time=chosen.time,
    )
    log = _read(chosen.traces, projection, wanted, chosen.most_bad)
    compared = None
    if chosen.compare:
        others = NameProjection() if chosen.rules is None else projection
        compared = _read(chosen.compare, others, wanted, chosen.most_bad)
    if len(log) > SLOW_TRACES and layers.missing("fast"):
        exit_codes.say(f"skills: {len(log):,} traces take minutes without numba: {layers.remedy('fast')}")
    content = describe(log, settings, compared)
    named = ", ".join(path.name or str(path) for path in chosen.traces[:3])
    page = render(
        content,
        episodes(content, projection, wanted),
        title=named + (" and others" if len(chosen.traces) > 3 else ""),
        projected_by=f"the rules of {chosen.rules}" if chosen.rules else "the names of tools or actions",
        viewer=viewer,
    )
    _write(chosen.output, content, page)
    _tell(chosen.output, content)
    return 0


def _parser() -> Parser:
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add("traces", type=Path, nargs="+", metavar="TRACES", help="a file of traces, or a folder with some")
    add("--rules", metavar="RULES.yaml", help="a table that names steps, or an environment of ours with one")
    add("--output", type=Path, default=RESULTS / "skills", metavar="FOLDER")
    add("--success", metavar="FIELD", help="who succeeded: FIELD, FIELD>=NUMBER or FIELD=VALUE of a record "
        "(our own rollouts and exports know it)")  # fmt: skip
    add("--task", metavar="FIELD", help="the task; traces of one task are not independent")
    add("--version", metavar="FIELD", help="the agent's version")
    add("--time", metavar="FIELD", help="what orders the traces")
    add("--between", nargs=2, metavar=("A", "B"), help="the versions to compare (default: the most frequent)")
    add("--compare", type=Path, action="append", default=[], metavar="OTHER_TRACES",
        help="traces of another version; may be repeated")  # fmt: skip
    add("--search", choices=("refined", "greedy"), default="refined")
    add(
        "--longest",
        type=whole(2, 16),
        default=6,
        metavar="L",
        help="skills in a routine at most, 2 to 16 (default 6)",
    )
    add("--longest-trace", type=whole(1), metavar="T", help="skills of a trace that the certificate counts")
    add("--most-bad", type=real(at_least=0, at_most=1), default=0.1, metavar="SHARE",
        help="share of bad lines above which nothing is written (default 0.1)")  # fmt: skip
    add("--viewer", metavar="URL", help="where `skillpress view` serves the same rollout files")
    return parser


def _settings(chosen: Namespace) -> Settings:
    if chosen.between and chosen.compare:
        raise OptionError(
            "--between chooses two versions of one log, --compare brings another: give one of them"
        )
    return Settings(
        chosen.search,
        chosen.longest,
        longest_trace=chosen.longest_trace,
        between=tuple(chosen.between) if chosen.between else None,
    )


def _address(viewer: str | None) -> str | None:
    if viewer is None:
        return None
    if urlsplit(viewer).scheme not in ("http", "https") or not urlsplit(viewer).netloc:
        raise OptionError(f"--viewer {viewer}: an address such as http://127.0.0.1:8000/ is needed")
    return viewer.split("#")[0]


def _read(paths: Sequence[Path], projection: TraceProjection, wanted: Wanted, most_bad: float) -> Log:
    shown = sys.stderr.isatty()

    def progress(traces: int) -> None:
        if shown:
            print(f"\rskills: {traces:,} traces", end="", file=sys.stderr, flush=True)

    try:
        return read_log(paths, projection, wanted, most_bad, progress)
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


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
CONTRASTS = {
    "compared": pl.String, "phrase": pl.String, "first": pl.Float64, "second": pl.Float64,
    "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "separates": pl.Boolean,
}  # fmt: skip


def _contrasts(content: Content) -> Iterator[dict[str, object]]:
    compared: list[Comparison] = [] if content.success is None else [content.success]
    compared += [] if content.versions is None else [content.versions.comparison]
    for comparison in compared:
        for contrast in comparison.contrasts:
            yield {
                "compared": f"{comparison.names[0]} - {comparison.names[1]}",
                "phrase": ARROW.join(contrast.phrase),
                "first": contrast.first,
                "second": contrast.second,
                "difference": contrast.difference,
                "low": contrast.low,
                "high": contrast.high,
                "separates": contrast.separates,
            }


def _table(path: Path, rows: list[dict[str, object]], schema: dict[str, type[pl.DataType]]) -> None:
    """Write a table as CSV; halves of surrogate pairs, which no file can hold, become question marks."""
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
        exit_codes.say(f"skills: {bad.file}, line {bad.number}: {bad.why[:200]}")
    if log.bad_lines:
        lines = "1 bad line was" if log.bad_lines == 1 else f"{log.bad_lines:,} bad lines were"
        exit_codes.say(f"skills: {lines} passed over; {folder}/bad_lines.csv names them")
    if log.doubt is not None:
        exit_codes.say(f"skills: {log.doubt}")
    of = "successes" if content.of_successes else "traces"
    routines = "routine" if len(content.routines) == 1 else "routines"
    print(f"{len(log):,} traces, {sum(log.steps):,} steps, {len(log.alphabet)} skills")
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
