"""The table of the difference between the engine's and the learner's probabilities, and its treatment."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from skillpress.show.report.data import Curve
from skillpress.show.report.tables import NOTHING, Row, Table, Value

HEADS = ("Difference in nats", "Ratio of a token", "Ratio of a response", "Cut at the cap")


def mismatch_table(curves: Sequence[Curve]) -> Table:
    """One line per training run that measured the difference, with medians over its steps.

    Ratios are learner to engine; below each is the range from the 1st to the 99th percentile. They cover all
    trained tokens if importance weights needed them, otherwise the responses that were compared.
    """
    measured = [curve for curve in curves if "mismatch/mean" in curve.frame.columns]
    rows = [Row(curve.method, _values(curve.frame), f"seed {curve.seed}") for curve in measured]
    return Table(HEADS, tuple(rows))


def _values(frame: pl.DataFrame) -> tuple[Value, ...]:
    weighted = "importance/truncated" in frame.columns
    source = "importance" if weighted else "mismatch"
    largest = float(frame["mismatch/largest"].max())  # type: ignore[arg-type]
    return (
        Value(f"{_median(frame, 'mismatch/mean'):.2g}", f"largest {largest:.2g}"),
        _ratio(frame, f"{source}/token_ratio"),
        _ratio(frame, f"{source}/sequence_ratio"),
        Value(f"{_median(frame, 'importance/truncated'):.2%}" if weighted else NOTHING),
    )


def _ratio(frame: pl.DataFrame, name: str) -> Value:
    low, middle, high = (_median(frame, f"{name}_{quantile}") for quantile in ("p01", "p50", "p99"))
    return Value(f"{middle:.4g}", f"{low:.4g} to {high:.4g}")


def _median(frame: pl.DataFrame, column: str) -> float:
    return float(frame[column].cast(pl.Float64).drop_nulls().median())  # type: ignore[arg-type]
