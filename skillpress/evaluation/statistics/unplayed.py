"""Evaluations that say nothing about their policy: no answer could be read, or no program asked the model."""

from __future__ import annotations

import polars as pl

from skillpress.core.errors import UserError
from skillpress.core.rollout_files import NOTHING_ASKED, TAKEN
from skillpress.evaluation.statistics.episodes import carried_out, malformed

NOT_READ = ("cut_off", "refused", "tool_call", "prompt_too_long", "not_served", NOTHING_ASKED)
"""Reasons, besides a wrong format, why a step has no readable answer."""
LAST_WORDS = 500
"""Messages show at most this many characters of a program's last output or of an answer."""


def refuse_unread(rollouts: pl.LazyFrame, accepted: bool) -> None:
    """Refuse an evaluation of a trained policy that says nothing about it, unless that is accepted.

    Raises:
        UserError: no answer could be read; the message says why.
    """
    if not accepted and (why := why_nothing_was_played(rollouts)):
        raise UserError(
            f"the trained policy: {why}. A success of 0% would say nothing about it; after a correction run "
            "again, or set evaluation.accept_unread: true"
        )


def why_nothing_was_played(rollouts: pl.LazyFrame) -> str:
    """Why an evaluation says nothing about its policy, with an example; empty if it says something.

    That is so if no episode was won, and no answer of any episode could be read: each was empty, of a wrong
    format or not asked for, or every program ended before it asked the model.
    """
    reason = pl.col("invalid").str.split("+").list.first()
    unread = (malformed() | reason.is_in(NOT_READ).fill_null(False)) & ~carried_out()
    taken = rollouts.filter(TAKEN)
    read = taken.filter(~unread | pl.col("won")).head(1).collect()
    if not read.is_empty():
        return ""
    named = taken.group_by(reason.alias("reason")).agg(
        pl.len(), pl.first("task_id", "observation", "answer", "outcome")
    )
    rows = named.sort("len", descending=True).collect(engine="streaming").rows(named=True)
    total = sum(row["len"] for row in rows)
    if not total:
        return "no episode has a step"
    counts = ", ".join(f"{row['reason']} {row['len']:,}" for row in rows)
    first = rows[0]
    if first["reason"] == NOTHING_ASKED:
        said = f"the program of task {first['task_id']} ended as {first['outcome']!r}; its last words: "
        return f"no program asked the model ({counts}): {said}{first['observation'].strip()[-LAST_WORDS:]!r}"
    answer = f", such as {first['answer'][:LAST_WORDS]!r}" if first["answer"] else ""
    return f"none of {total:,} answers could be read ({counts}){answer}"
