"""How hard a question is by itself: the number of facts that it joins.

L0's own notion of difficulty (sections 4.3 and 4.5: easy and hard sets of questions) is how often a policy
answers it. ``tasks.keep`` chooses training tasks by that; L0 does not state its thresholds.
"""

from __future__ import annotations

from typing import Final

import polars as pl

HOPS_OF_DATASET: Final = {"bamboogle": 2, "nq_open": 1, "triviaqa": 1, "simpleqa": 1}
"""Number of hops in data sets whose questions do not state it, derived from how the questions were
written."""


def hops() -> pl.Expr:
    """Number of facts to join, from columns ``dataset``, ``kind`` and ``supporting_titles``; null if it is
    unknown.

    MuSiQue's kind states it (``3hop1``); elsewhere every gold title is a fact; otherwise
    :data:`HOPS_OF_DATASET`.
    """
    titles = pl.col("supporting_titles").list.len()
    return pl.coalesce(
        pl.col("kind").str.extract(r"^(\d)hop").cast(pl.Int64),
        pl.when(titles > 0).then(titles.cast(pl.Int64)),
        pl.col("dataset").replace_strict(HOPS_OF_DATASET, default=None, return_dtype=pl.Int64),
    ).alias("hops")
