"""Stage: from actions to skills, s = φ(τ), for every rollout of the start policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.rollout_files import TAKEN, iterate_rollouts, scan_rollouts
from skillpress.core.sequence_files import scan_sequences, write_sequences
from skillpress.core.trajectory import SkillSequence, Task
from skillpress.environments import bundle
from skillpress.environments.bundle import Projection
from skillpress.pipeline.files import BASE_ROLLOUTS, SEQUENCES, load_tasks

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/skills/sequences.parquet."""
    section = stage.params.environment
    environment = bundle(section.name)
    tasks = load_tasks(environment)["train"]
    count = scan_rollouts(BASE_ROLLOUTS).select(((pl.col("step") == 0) & TAKEN).sum()).collect().item()
    with stage.progress(count, "trajectory") as progress:
        write_sequences(SEQUENCES, projected(environment.projection_of(section), tasks, progress))
    lengths = scan_sequences(SEQUENCES).select(pl.col("labels", "skills").list.len().cast(pl.Int64).sum())
    steps, labelled = lengths.collect().row(0)
    stage.run.log_metrics({"skills/sequences": count, "skills/labelled_share": labelled / steps})


def projected(
    projection: Projection, tasks: Sequence[Task], progress: Callable[[int], None]
) -> Iterator[SkillSequence]:
    """The skills of every rollout, one after the other; each adds to ``progress``."""
    by_id = {task.task_id: task for task in tasks}
    for count, trajectory in enumerate(iterate_rollouts(BASE_ROLLOUTS, tokens=False), 1):
        labels = projection(by_id[trajectory.task_id], trajectory)
        yield SkillSequence(
            task_id=trajectory.task_id,
            rollout_index=trajectory.rollout_index,
            won=trajectory.won,
            skills=tuple(label for label in labels if label is not None),
            labels=labels,
        )
        progress(count)
