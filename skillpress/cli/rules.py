"""``skillpress rules TRACES...``: a table of rules for `skills --rules`, drafted from the same logs.

    skillpress rules logs/ --output rules.yaml
    skillpress skills logs/ --rules rules.yaml

Names the tools, the commands that a shell tool runs (a command line is split at pipes, && and ;), and the
kinds of a tool whose argument divides it, such as view and create of an editor; in a log without tools, the
first words of actions. Every rule has its count as a comment. The table works without changes, but is meant
to be edited.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from skillpress.cli.reading import (
    NotUnderstoodError,
    add_reading_options,
    read,
    refusal_of,
    tell_warnings,
    wanted_by,
)
from skillpress.core.arguments import CommandParser, output_file
from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.core.visible import line
from skillpress.logs.draft_table import table_of
from skillpress.logs.drafting import Draft
from skillpress.logs.fields import Wanted
from skillpress.logs.log import Log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at

MOST_TRACES, AT_ONCE = 5000, 500
"""A draft reads at most this many traces, spread evenly over the log, and keeps this many in memory."""


class TableExistsError(UserError):
    """The table's file exists already, and may have been edited."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    add_reading_options(parser)
    parser.add_argument(
        "--output", type=output_file, metavar="FILE.yaml", help="a new file (default: print it)"
    )
    chosen = parser.parse_args(arguments)
    if chosen.output is not None and chosen.output.exists():
        raise TableExistsError(f"--output {chosen.output}: exists and may have been edited; name a new file")
    names, wanted = NameProjection(), wanted_by(chosen)
    log, _ = read("rules", chosen.traces, names, wanted, chosen.most_bad)
    if (refusal := refusal_of(log, names.words)) is not None:
        raise NotUnderstoodError(f"{refusal}; `skillpress skills --look` shows how the log was read")
    draft = drafted(log, wanted)
    if not (draft.tools or draft.verbs):
        raise NotUnderstoodError("no step calls a tool by name or acts, so there is nothing to name")
    named = ", ".join(line(path.name or str(path), 60) for path in chosen.traces[:3])
    text = table_of(draft, named + (" and others" if len(chosen.traces) > 3 else ""))
    tell_warnings("rules", log)
    if chosen.output is None:
        print(text, end="")
    else:
        write_text(chosen.output, text)
        print(f"written to {chosen.output}: edit it, then skillpress skills ... --rules {chosen.output}")
    return 0


def drafted(log: Log, wanted: Wanted) -> Draft:
    """The counts of the log's traces, which are read a second time with all fields of their steps."""
    draft = Draft()
    chosen = range(0, len(log), -(-len(log) // MOST_TRACES))
    for begun in range(0, len(chosen), AT_ONCE):
        for _, trace in traces_at(log, wanted, chosen[begun : begun + AT_ONCE]):
            draft.add(trace)
    return draft


if __name__ == "__main__":
    sys.exit(main())
