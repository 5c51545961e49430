"""Stage: from actions to skills, s = φ(τ), for every rollout of the start policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.rollout_files import TAKEN, scan_rollouts
from skillpress.core.sequence_files import write_sequences
from skillpress.experiment.start_rollouts import projected
from skillpress.pipeline.files import BASE_ROLLOUTS, SEQUENCES, load_tasks

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/skills/sequences.parquet."""
    environment = stage.params.environment
    tasks = load_tasks(environment)["train"]
    count = scan_rollouts(BASE_ROLLOUTS).select(((pl.col("step") == 0) & TAKEN).sum()).collect().item()
    with stage.progress(count, "trajectory") as progress:
        write_sequences(SEQUENCES, projected(environment.make_projection(), tasks, BASE_ROLLOUTS, progress))
    labelled = scan_rollouts(BASE_ROLLOUTS).filter(TAKEN).select((pl.col("skills").list.len() > 0).mean())
    stage.run.log_metrics({"skills/sequences": count, "skills/labelled_share": labelled.collect().item()})
