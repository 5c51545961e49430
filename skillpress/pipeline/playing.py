"""Plays the episodes of an evaluation and reports progress as a stage does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.errors import UserError
from skillpress.core.rollout_files import NOTHING_ASKED, TAKEN, scan_rollouts
from skillpress.experiment.collection import CollectionJob, Play, play_episodes

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage

LAST_WORDS = 500
"""Messages show at most this many characters of a program's last output."""


def play(stage: Stage, plays: Sequence[Play], output: Path) -> None:
    """Write all episodes, including those that an interrupted process has played."""
    job = CollectionJob(params=stage.params, sampling="evaluation", plays=plays, store=stage.store)
    with stage.progress(sum(len(each.wanted) for each in plays), "episode") as progress:
        play_episodes(job, output, progress.more)
    refuse_unasked(scan_rollouts(output))


def refuse_unasked(rollouts: pl.LazyFrame) -> None:
    """Refuse episodes of a program that never asked the model: they say nothing about any policy.

    Raises:
        UserError: no program asked; the message has the last output of one.
    """
    taken = rollouts.filter(TAKEN)
    asked = pl.col("invalid").ne_missing(NOTHING_ASKED)
    if not taken.filter(asked).head(1).collect().is_empty():
        return
    for task, outcome, said in (
        taken.select("task_id", "outcome", "observation").head(1).collect().iter_rows()
    ):
        raise UserError(
            f"no program asked the model: the program of task {task} ended as {outcome!r}; its last words: "
            f"{said.strip()[-LAST_WORDS:]!r}"
        )
