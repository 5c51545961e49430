"""What ``skillpress skills`` and ``skillpress rules`` share: their options and how they read a log."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillpress.core.arguments import CommandParser, real
from skillpress.logs.call_pattern import call_pattern
from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.labels import read_labels
from skillpress.logs.last_call import last_call
from skillpress.logs.log import ROLLOUTS, Log, read_log
from skillpress.logs.missing_fields import MissingFieldError
from skillpress.logs.own_paths import paths_of
from skillpress.logs.projection import NameProjection, TraceProjection
from skillpress.logs.trace import TracesError
from skillpress.logs.words import Words

_LOG = logging.getLogger(__name__)

FEW_CALLS = 0.05
"""The command warns if less than this share of a log's steps are calls."""
DOCS = "docs/skills_of_any_agent.md"
FORMATS = "docs/log_formats.md"


class NotUnderstoodError(TracesError):
    """No skills can be read from the steps of a log."""


def add_reading_options(parser: CommandParser) -> None:
    """Add the argument for the log and the options that say how it is read."""
    parser.add_argument(
        "traces", type=Path, nargs="+", metavar="TRACES", help="a file of traces, or a folder with some"
    )
    add_ways_of_reading(parser)


def add_ways_of_reading(parser: CommandParser) -> None:
    """Add the options that say how a log is read."""
    add = parser.add_argument
    add("--call", metavar="PATTERN", help="a regular expression of calls in text, with the group "
        "(?P<tool>...) and perhaps (?P<arguments>...)")  # fmt: skip
    add("--messages", metavar="PATH", help="where a run's messages or calls are in a record, for a log of a "
        "format that is not known, such as steps.-1.chat")  # fmt: skip
    add("--run", metavar="PATH", help="where the runs of a record are, or the name of the run that it is of")
    add("--outcome", metavar="PATH", help="where the outcome is, with a condition if need be: reward>=0.5")
    add("--paths", type=Path, dest="table_of_paths", metavar="FILE.yaml", help="a table of these and further "
        f"paths ({FORMATS}#other-formats)")  # fmt: skip
    add("--most-bad", type=real(at_least=0, at_most=1), default=0.1, metavar="SHARE",
        help="share of bad lines above which nothing is written (default 0.1)")  # fmt: skip


def add_field_options(parser: CommandParser) -> None:
    """Add the options that name fields."""
    add = parser.add_argument
    add("--success", metavar="FIELD", help="which traces succeeded: FIELD, FIELD>=NUMBER, FIELD<=NUMBER or "
        "FIELD=VALUE of a record (default: the field where the format keeps it)")  # fmt: skip
    add("--outcomes", type=Path, metavar="FILE", help="labels from elsewhere: id and success, as CSV, JSON "
        "lines or Parquet")  # fmt: skip
    add("--last-call", metavar="RULE", help="the last such call decides: tests, or two regular expressions, "
        "'pytest -> [1-9]\\d* passed'")  # fmt: skip
    add("--task", metavar="FIELD", help="the task; traces of one task are not independent")
    add("--version", metavar="FIELD", help="the agent's version")
    add("--time", metavar="FIELD", help="what orders the traces")


def wanted_by(chosen: Namespace) -> Wanted:
    """What the options say about the records.

    Raises:
        TracesError: an option cannot be read, or several say which traces succeeded.
    """
    named = {name: getattr(chosen, name, None) for name in ("success", "task", "version", "time")}
    labels, rule = getattr(chosen, "outcomes", None), getattr(chosen, "last_call", None)
    given = {"--success": named["success"], "--outcomes": labels, "--last-call": rule}
    several = [option for option, value in given.items() if value is not None]
    if len(several) > 1:
        raise TracesError(f"{' and '.join(several)} each say which traces succeeded: give only one of them")
    return Wanted(
        success=None if named["success"] is None else success_field(named["success"]),
        task=named["task"],
        version=named["version"],
        time=named["time"],
        call=None if chosen.call is None else call_pattern(chosen.call),
        paths=paths_of(chosen.table_of_paths, chosen.messages, chosen.run, chosen.outcome),
        judge=read_labels(labels) if labels is not None else None if rule is None else last_call(rule),
    )


def read(
    command: str, paths: Sequence[Path], projection: TraceProjection, wanted: Wanted, most_bad: float
) -> tuple[Log, Wanted]:
    """The log, and how it was read. If no trace has the field of ``--success`` but the log has outcomes, the
    option is ignored with a warning.

    Args:
        command: the command's name, printed before the count of traces.
    """
    shown = sys.stderr.isatty() and _LOG.isEnabledFor(logging.INFO)

    def progress(traces: int) -> None:
        if shown:
            print(f"\r{command}: {traces:,} traces", end="", file=sys.stderr, flush=True)

    try:
        return read_log(paths, projection, wanted, most_bad, progress), wanted
    except MissingFieldError as error:
        if error.option != "success":
            raise
        own = replace(wanted, success=None)
        log = read_log(paths, projection, own, most_bad, progress)
        if not (kept := ", ".join(log.outcomes.named())):
            raise
        log.warnings.insert(0, f"{error}; the outcomes are those that the log keeps in {kept}")
        return log, own
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def check_used(log: Log, wanted: Wanted) -> None:
    """After all logs are read, add a warning about the user's labels that belong to no trace.

    Raises:
        TracesError: no label belongs to a trace.
    """
    if wanted.judge is not None:
        log.warnings += wanted.judge.unused()


def check_understood(log: Log, projection: TraceProjection, words: str | None) -> None:
    """Add warnings about unusual steps of a log.

    Args:
        words: the value of ``--words``.

    Raises:
        NotUnderstoodError: the steps have no skills, or their words are not commands.
    """
    if isinstance(projection, NameProjection):
        refusal = refusal_of(log, projection.words)
        if refusal is not None and words is None:
            raise NotUnderstoodError(f"{refusal}. {_ways(projection.words)}")
        if refusal is not None:
            log.warnings.append(f"{refusal}; --words {words} was given all the same")
        elif 0 < log.called < FEW_CALLS * log.steps:
            log.warnings.append(
                f"only {log.called:,} of {log.steps:,} steps call a tool; the others are words"
            )
    if not any(trace.skills for trace in log.traces):
        nameless = log.tools.get("", 0)
        steps = f"{nameless:,} of {log.steps:,} steps"
        counted = f" ({steps} call a tool without a name)" if nameless else ""
        raise NotUnderstoodError(
            "no step has a skill: no rule fits an action, or (without --rules) no step calls a tool by name "
            f"or acts; --look shows how the log was read{counted}"
        )


def refusal_of(log: Log, words: Words) -> str | None:
    """Why the words of a log must not be used as skills; None if they may be, as in skillpress's own rollout
    files.
    """
    return None if set(log.formats) == {ROLLOUTS} else words.refusal(log.in_words, log.called)


def _ways(words: Words) -> str:
    return (
        "--look shows how the log was read; --call PATTERN reads calls from the text, a table of rules "
        "(--rules) names steps by their words, --words first takes the first word of each step as its skill, "
        f"--words none gives them no skill ({DOCS}#words)"
    )


def tell_warnings(command: str, log: Log) -> None:
    """Print the warnings."""
    for warning in log.warnings:
        _LOG.warning("%s: %s", command, warning)
