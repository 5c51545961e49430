"""How a server's answers ended: counts over an evaluation's steps, and a sentence about them.

A success rate means little if answers were cut off or refused. So these are counted apart from answers in a
wrong format, each with what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from skillpress.core.rollout_files import TAKEN
from skillpress.measure.evaluation.episodes import carried_out, malformed

MALFORMED = "malformed"
TOLD = {
    "cut_off": "{count:,} cut off at {limit}",
    "refused": "{count:,} refused by the model or by a filter",
    "tool_call": "{count:,} tool calls without text (turn tools off at the server)",
    "prompt_too_long": "{count:,} not asked for, since the prompt does not fit (serve a longer context, or "
    "shorten the prompts)",
    "not_served": "{count:,} requests of the program that the server refused",
    MALFORMED: "{count:,} in a wrong format",
}
"""Why an answer gave no good step, to the sentence's words; ``MALFORMED`` covers all other reasons."""
NOTHING_ASKED = "nothing_asked"
"""The reason of a program's step without a request."""
LAST_WORDS = 500
"""Characters of a program's last words, or of an answer, in a message."""
TOTAL = "answers"
"""The key for the number of all answers, including those that were not asked for."""


def count_endings(rollouts: pl.LazyFrame) -> dict[str, int]:
    """``TOTAL`` and each key of ``TOLD``, to the number of such answers in an evaluation."""
    reason = pl.col("invalid").str.split("+").list.first()
    named = {name: (reason == name).sum() for name in TOLD if name != MALFORMED}
    others = malformed() & ~reason.is_in(list(named)).fill_null(False)
    counts = rollouts.select(pl.len().alias(TOTAL), **named, malformed=others.sum())
    return {name: int(count) for name, count in counts.collect(engine="streaming").row(0, named=True).items()}


def why_nothing_was_played(rollouts: pl.LazyFrame) -> str:
    """Why an evaluation says nothing about its policy, with an example; empty if it says something.

    That is so if no episode was won, and no answer of any episode could be read: each was empty, of a wrong
    format or not asked for, or every program ended before it asked the model.
    """
    reason = pl.col("invalid").str.split("+").list.first()
    unread = (malformed() | reason.is_in([*TOLD, NOTHING_ASKED]).fill_null(False)) & ~carried_out()
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


def endings_told(counts: Mapping[str, int], total: int, limit: str) -> str:
    """A sentence; empty if no answer has one of the endings of ``TOLD``.

    Args:
        limit: text that gives the longest response and how to raise it.
    """
    told = [
        sentence.format(count=counts[name], limit=limit)
        for name, sentence in TOLD.items()
        if counts.get(name)
    ]
    return f"of {total:,} answers {'; '.join(told)}" if told else ""
