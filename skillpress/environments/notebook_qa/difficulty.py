"""How hard a question is by itself: the number of facts that it joins.

L0's own notion of difficulty (sections 4.3 and 4.5: easy and hard sets of questions) is how often a policy
answers it. ``tasks.keep`` chooses training tasks by that; L0 does not state its thresholds.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from skillpress.environments.notebook_qa.parameters import Difficulty

HOPS_OF_DATASET: Final = {"bamboogle": 2, "nq_open": 1, "triviaqa": 1, "simpleqa": 1}
"""Number of hops in data sets whose questions do not state it, derived from how the questions were
written."""


def is_of(chosen: Difficulty) -> pl.Expr:
    """Whether a set contains a question, by its ``hops``: an easy question needs one fact, a hard one joins
    several. A question whose hops are unknown is in neither set. L0 has two such sets (section 4.5); neither
    the paper nor the released code says how they were made."""
    if chosen == "all":
        return pl.lit(True)
    return (pl.col("hops") == 1 if chosen == "easy" else pl.col("hops") > 1).fill_null(False)


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
