"""A model's verdicts on the training questions: whether each has a single answer that does not change over
time.

L0 chooses its questions by "objectivity, temporal stability, and question difficulty" (section 4.3). The
rules of ``questions.py`` read surface forms; in addition, a model may judge the questions that they keep. Its
verdicts are a file, made once by ``skillpress judge-questions`` and named by ``environment.objectivity``. So
the same tasks result every time, whatever the model would say today. An unreadable verdict drops no question.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from skillpress.core.errors import TaskError

NOT_OBJECTIVE = "not_objective"
"""The reason for dropping a question that the judge found unsuitable."""
VERDICT_COLUMNS = {"dataset": pl.String(), "id": pl.String(), "objective": pl.Boolean()}
"""The columns of a file of verdicts; ``objective`` is null if the verdict could not be read."""


def without_subjective(questions: pl.DataFrame, verdicts: str | Path) -> pl.DataFrame:
    """Set the reason :data:`NOT_OBJECTIVE` for the questions that were found unsuitable.

    Args:
        questions: ``dataset``, ``id`` and ``reason``, which is null for questions that the rules kept.
        verdicts: the file.

    Raises:
        TaskError: it cannot be read, lacks a column, or lacks a question that the rules kept.
    """
    found = _read(Path(verdicts))
    joined = questions.select("dataset", "id", "reason").join(
        found.with_columns(judged=True), on=["dataset", "id"], how="left", maintain_order="left"
    )
    missing = joined.filter(pl.col("reason").is_null() & pl.col("judged").is_null())
    if not missing.is_empty():
        dataset, name = missing.row(0)[:2]
        raise TaskError(
            f"environment.objectivity: {verdicts} says nothing of {missing.height} questions that the rules "
            f"keep, such as {dataset}/{name}; make it again with `skillpress judge-questions`"
        )
    unfit = pl.when(pl.col("objective").not_()).then(pl.lit(NOT_OBJECTIVE))
    reasons = joined.select(reason=pl.coalesce("reason", unfit)).to_series()
    return questions.with_columns(reasons)


def _read(file: Path) -> pl.DataFrame:
    try:
        rows = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TaskError(
            f"environment.objectivity: {file} is not a readable Parquet file ({error})"
        ) from error
    for name, kind in VERDICT_COLUMNS.items():
        if rows.schema.get(name) != kind:
            got = rows.schema.get(name, "missing")
            raise TaskError(f"environment.objectivity: {file}: column {name} is {got}; it must be {kind}")
    return rows.select(*VERDICT_COLUMNS).unique(["dataset", "id"], keep="last", maintain_order=True)
