"""How a server's answers ended: counts over an evaluation's steps, and a sentence about them.

A success rate means little if answers were cut off or refused. So these are counted separately from answers
in a wrong format, each with a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from skillpress.evaluation.statistics.episodes import malformed

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
"""Maps each reason why an answer gave no good step to its words; ``MALFORMED`` covers all other reasons."""
TOTAL = "answers"
"""The key for the number of all answers, including steps for which no answer was requested."""


def count_endings(rollouts: pl.LazyFrame) -> dict[str, int]:
    """The number of answers of an evaluation for ``TOTAL`` and for each key of ``TOLD``."""
    reason = pl.col("invalid").str.split("+").list.first()
    named = {name: (reason == name).sum() for name in TOLD if name != MALFORMED}
    others = malformed() & ~reason.is_in(list(named)).fill_null(False)
    counts = rollouts.select(pl.len().alias(TOTAL), **named, malformed=others.sum())
    return {name: int(count) for name, count in counts.collect(engine="streaming").row(0, named=True).items()}


def endings_told(counts: Mapping[str, int], total: int, limit: str) -> str:
    """A sentence about the endings; empty if no answer has one of the endings of ``TOLD``.

    Args:
        limit: text that gives the longest response and how to raise it.
    """
    told = [
        sentence.format(count=counts[name], limit=limit)
        for name, sentence in TOLD.items()
        if counts.get(name)
    ]
    return f"of {total:,} answers {'; '.join(told)}" if told else ""
