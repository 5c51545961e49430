"""The figures of L0's tables, computed from answers: EM and F1 per data set, and their averages.

L0 says how it counts EM but not how it counts F1. Each data set is scored by the rule of its own evaluation
program (2WikiMultihopQA's is HotpotQA's). Data sets without one use MuSiQue's rule, which is SQuAD's common
one.
"""

from __future__ import annotations

import polars as pl

from skillpress.environments.notebook_qa.answers import exact_match, f1, f1_rule
from skillpress.measure.paper.notebook_qa.printed import AVERAGE


def answer_figures(answered: pl.DataFrame) -> pl.DataFrame:
    """``method``, ``dataset``, ``metric`` (``em``, ``f1``), ``percent`` and ``answers``.

    Args:
        answered: a row per episode with ``method``, ``dataset``, ``predicted`` (null if nothing was
            submitted, which scores as blank) and ``answers`` (aliases).
    """
    rows = answered.select("dataset", pl.col("predicted").fill_null(""), "answers").iter_rows()
    scores = [
        (exact_match(predicted, aliases), f1(predicted, aliases, f1_rule(dataset)))
        for dataset, predicted, aliases in rows
    ]
    schema = {"em": pl.Float64, "f1": pl.Float64}
    scored = answered.select("method", "dataset").hstack(pl.DataFrame(scores, schema=schema, orient="row"))
    return (
        scored.unpivot(on=list(schema), index=["method", "dataset"], variable_name="metric")
        .group_by("method", "dataset", "metric")
        .agg(percent=100 * pl.col("value").mean(), answers=pl.len())
        .sort("method", "dataset", "metric")
    )


def with_averages(figures: pl.DataFrame, datasets: tuple[str, ...]) -> pl.DataFrame:
    """The figures and each method's mean over these data sets (*Avg.*), if it has a figure for all."""
    means = (
        figures.filter(pl.col("dataset").is_in(datasets))
        .group_by("method", "metric")
        .agg(pl.col("percent").mean(), pl.col("answers").sum(), found=pl.col("dataset").n_unique())
        .filter(pl.col("found") == len(set(datasets)))
        .select("method", "metric", "percent", "answers", dataset=pl.lit(AVERAGE))
    )
    return pl.concat([figures, means.select(figures.columns)]).sort("method", "dataset", "metric")
