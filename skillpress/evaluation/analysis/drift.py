"""How the dictionary changes over training: which phrases live how long (``skills/history.py``)."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from skillpress.evaluation.analysis.mdl_report import ARROW, overlap
from skillpress.skills.dictionary import Skills
from skillpress.skills.history import History


def lifetimes(history: History) -> pl.DataFrame:
    """``phrase``, ``first``, ``last``, ``steps``, ``uses``, one row per phrase, the longest-lived first."""
    return (
        spans(history)
        .group_by("phrase", maintain_order=True)
        .agg(
            first=pl.col("first").min(),
            last=pl.col("last").max(),
            steps=(pl.col("last") - pl.col("first") + 1).sum(),
            uses=pl.col("uses").sum(),
        )
        .sort("steps", "uses", descending=True, maintain_order=True)
    )


def spans(history: History) -> pl.DataFrame:
    """``phrase``, ``first``, ``last``, ``uses``: one row for every stretch of steps with a phrase.

    A step without a dictionary ends all stretches.
    """
    schema = {"phrase": pl.String, "first": pl.Int64, "last": pl.Int64, "uses": pl.Int64}
    rows: list[list[str | int]] = []
    living: dict[Skills, list[str | int]] = {}
    for step in sorted(history):
        before, living = living if step - 1 in history else {}, {}
        for phrase, uses in history[step].items():
            row = before.get(phrase)
            if row is None:
                row = [ARROW.join(phrase), step, step, 0]
                rows.append(row)
            living[phrase] = row
            row[2:] = [step, int(row[3]) + uses]
    return pl.DataFrame(rows, schema=schema, orient="row")


def drift(history: History, base: Mapping[Skills, int] | None = None) -> pl.DataFrame:
    """How similar each step's dictionary is to others, one row per step.

    Args:
        base: the learned phrases of the dictionary before training, and their uses.

    Returns:
        ``step``, ``phrases`` (number of learned phrases), ``born`` and ``died`` since the step before,
        ``previous`` (Jaccard index with that step's phrases), ``base_phrases`` and ``base_uses`` (the overlap
        with ``base``). Null if there is nothing to compare with.
    """
    rows: list[tuple[int | float | None, ...]] = []
    for step in sorted(history):
        now, before = history[step], history.get(step - 1)
        rows.append(
            (
                step,
                len(now),
                None if before is None else len(now.keys() - before.keys()),
                None if before is None else len(before.keys() - now.keys()),
                None if before is None else overlap(before, now).phrases,
                None if base is None else overlap(base, now).phrases,
                None if base is None else overlap(base, now).uses,
            )
        )
    counts = dict.fromkeys(("step", "phrases", "born", "died"), pl.Int64)
    shares = dict.fromkeys(("previous", "base_phrases", "base_uses"), pl.Float64)
    return pl.DataFrame(rows, schema={**counts, **shares}, orient="row")
