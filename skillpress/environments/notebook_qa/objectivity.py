"""What a model said of the training questions: whether each has one answer that does not move with time.

L0 chooses its questions by "objectivity, temporal stability, and question difficulty" (section 4.3). The
rules of ``questions.py`` read surface forms; a model may judge what they keep. Its verdicts are a file, made
once by ``skillpress judge-questions`` and named by ``environment.objectivity``: so the same tasks come out
again, whatever the model would say today. A verdict that nobody could read drops nothing.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from skillpress.core.errors import TaskError

NOT_OBJECTIVE = "not_objective"
"""The reason why a question is dropped that the judge found unfit."""
VERDICT_COLUMNS = {"dataset": pl.String(), "id": pl.String(), "objective": pl.Boolean()}
"""What a file of verdicts holds; ``objective`` is null where the verdict could not be read."""


def without_subjective(questions: pl.DataFrame, verdicts: str | Path) -> pl.DataFrame:
    """The questions with the reason :data:`NOT_OBJECTIVE` at those that were found unfit.

    Args:
        questions: ``dataset``, ``id`` and ``reason``, which is null at those that the rules kept.
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
            f"keep, such as {dataset}/{name}; make it anew with `skillpress judge-questions`"
        )
    unfit = pl.when(pl.col("objective").not_()).then(pl.lit(NOT_OBJECTIVE))
    reasons = joined.select(reason=pl.coalesce("reason", unfit)).to_series()
    return questions.with_columns(reasons)


def _read(file: Path) -> pl.DataFrame:
    try:
        rows = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TaskError(f"environment.objectivity: {file} is no readable Parquet file ({error})") from error
    for name, kind in VERDICT_COLUMNS.items():
        if rows.schema.get(name) != kind:
            got = rows.schema.get(name, "missing")
            raise TaskError(f"environment.objectivity: {file}: column {name} is {got}; it must be {kind}")
    return rows.select(*VERDICT_COLUMNS).unique(["dataset", "id"], keep="last", maintain_order=True)
