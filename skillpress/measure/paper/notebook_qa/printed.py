"""L0's Tables 1 and 2 as printed, and the places where its text says something else.

``printed_l0.csv`` has a row per figure, in percent with the paper's decimals. *average* is the mean over the
data sets of the same metric; every printed average is right to the last digit. Table 1 names no metric: its
rows for L0 are the exact match of Table 2's 7B model, and its other rows were "adopted from those reported in
ZeroSearch", not run by L0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import polars as pl

TABLES = (1, 2)
METRICS = {"em": "EM", "f1": "F1", "judge": "LJ"}
"""Metric to its heading in the paper."""
AVERAGE = "average"

_FILE = files("skillpress.measure.paper.notebook_qa") / "printed_l0.csv"


@dataclass(frozen=True)
class Slip:
    """A place where the paper's text and its tables disagree, or where it does not say what it counts."""

    where: str
    said: str
    printed: str
    """The figure in the table; comparisons use the tables."""
    note: str


SLIPS = (
    Slip(
        where="section 4.4, the average of L0-Scaffold",
        said="18.57",
        printed="20.52",
        note="Table 1's average is the mean of its row; the text's figure is nowhere in the tables",
    ),
    Slip(
        where="section 4.4, exact match of the 32B model's L0-Scaffold",
        said="43.50",
        printed="41.00",
        note="Table 2's average is the mean of its row; the text's figure is nowhere in the tables",
    ),
    Slip(
        where="abstract, SimpleQA from 30 to 80 percent",
        said="30 to 80",
        printed="30.45 to 80.40",
        note="the judge's score; by exact match it is 21.94 to 61.68, while HotpotQA's 22 to 41 beside it is "
        "exact match (its judge's score is not printed)",
    ),
)
"""Found by recomputing every average and looking up every figure in the text."""


@cache
def printed() -> pl.DataFrame:
    """Every figure: ``table``, ``backbone``, ``method``, ``dataset``, ``metric`` and ``percent``."""
    return pl.read_csv(_FILE.read_bytes(), schema_overrides={"percent": pl.Float64, "table": pl.Int64})
