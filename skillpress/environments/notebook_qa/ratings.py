"""Which questions a model's ratings drop: those without 1 for both objectivity and temporal stability.

The file is made once by ``skillpress judge-questions`` and named by ``environment.objectivity``, so the same
tasks result whatever the model would say today. Where a rating could not be read, the rules that the ratings
replace decide (``questions.RATED``), and a warning says for how many questions.
"""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl

from skillpress.core.errors import TaskError
from skillpress.environments.notebook_qa.questions import RATED, read_columns, reason_in_words

_LOG = logging.getLogger(__name__)

NOT_OBJECTIVE, NOT_STABLE = "not_objective", "not_stable"
"""The reasons for dropping a question that was rated below 1."""
RATING_COLUMNS = {
    "dataset": pl.String(),
    "id": pl.String(),
    "stability": pl.Int8(),
    "objectivity": pl.Int8(),
}
"""The columns of a file of ratings, which are 1, 0 or -1, and null if they could not be read."""


def by_ratings(questions: pl.DataFrame, file: str | Path) -> pl.DataFrame:
    """The questions with the reasons that their ratings give.

    Args:
        questions: ``dataset``, ``id``, ``question`` and ``reason``, which is null for questions that the
            rules kept, without those that ratings replace.
        file: the ratings.

    Raises:
        TaskError: it cannot be read, has another rating, or lacks a column or a question that the rules kept.
    """
    place = f"environment.objectivity: {file}"
    found = read_columns(file, RATING_COLUMNS, place).unique(["dataset", "id"], keep="last")
    wrong = found.filter(~pl.all_horizontal(pl.col("stability", "objectivity").is_between(-1, 1)))
    if not wrong.is_empty():
        dataset, name, *rated = wrong.row(0)
        raise TaskError(f"{place}: {dataset}/{name} is rated {rated}; a rating must be 1, 0 or -1")
    joined = questions.join(
        found.with_columns(rated=True), on=["dataset", "id"], how="left", maintain_order="left"
    )
    open_ones = joined.filter(pl.col("reason").is_null())
    missing = open_ones.filter(pl.col("rated").is_null())
    if not missing.is_empty():
        dataset, name = missing.select("dataset", "id").row(0)
        raise TaskError(
            f"{place} has no ratings of {missing.height} questions that the rules keep, such as "
            f"{dataset}/{name}; make it again with `skillpress judge-questions`"
        )
    if in_words := open_ones.filter(undecided()).height:
        _LOG.warning(
            "%s: %d of %d questions lack a readable rating; regular expressions decide whether they are %s",
            place, in_words, open_ones.height, " or ".join(RATED),
        )  # fmt: skip
    reason = pl.coalesce(
        "reason",
        pl.when(pl.col("objectivity") < 1).then(pl.lit(NOT_OBJECTIVE)),
        pl.when(pl.col("stability") < 1).then(pl.lit(NOT_STABLE)),
        pl.when(undecided()).then(reason_in_words()),
    )
    return questions.with_columns(joined.select(reason=reason).to_series())


def undecided() -> pl.Expr:
    """Whether no rating is below 1 and one could not be read."""
    stability, objectivity = pl.col("stability"), pl.col("objectivity")
    lowest = pl.min_horizontal(stability, objectivity).fill_null(1)
    return (lowest == 1) & (stability.is_null() | objectivity.is_null())
