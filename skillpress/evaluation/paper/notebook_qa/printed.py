"""L0's Tables 1 and 2 as printed. Where its text says something else, the tables count.

``printed_l0.csv`` has a row per figure, in percent with the paper's decimals. *average* is the mean over the
data sets of the same metric; every printed average is right to the last digit. Table 1 names no metric: its
rows for L0 are the exact match of Table 2's 7B model, and its other rows were "adopted from those reported in
ZeroSearch", not run by L0.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import polars as pl

TABLES = (1, 2)
METRICS = {"em": "EM", "f1": "F1", "judge": "LJ"}
"""The heading of each metric in the paper."""
AVERAGE = "average"

_FILE = files("skillpress.evaluation.paper.notebook_qa") / "printed_l0.csv"


@cache
def printed() -> pl.DataFrame:
    """Every figure: ``table``, ``backbone``, ``method``, ``dataset``, ``metric`` and ``percent``."""
    return pl.read_csv(_FILE.read_bytes(), schema_overrides={"percent": pl.Float64, "table": pl.Int64})
