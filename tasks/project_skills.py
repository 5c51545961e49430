"""Stage: from actions to skills, s = φ(τ), for every rollout of the start policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.rollout_files import TAKEN, iterate_rollouts, scan_rollouts
from skillpress.core.sequence_files import write_sequences
from skillpress.core.trajectory import SkillSequence, Task, skill_sequence
from skillpress.environments.section import Projection
from skillpress.pipeline.files import BASE_ROLLOUTS, SEQUENCES, load_tasks

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/skills/sequences.parquet."""
    environment = stage.params.environment
    tasks = load_tasks(environment)["train"]
    count = scan_rollouts(BASE_ROLLOUTS).select(((pl.col("step") == 0) & TAKEN).sum()).collect().item()
    with stage.progress(count, "trajectory") as progress:
        write_sequences(SEQUENCES, projected(environment.make_projection(), tasks, progress))
    labelled = scan_rollouts(BASE_ROLLOUTS).filter(TAKEN).select((pl.col("skills").list.len() > 0).mean())
    stage.run.log_metrics({"skills/sequences": count, "skills/labelled_share": labelled.collect().item()})


def projected(
    projection: Projection, tasks: Sequence[Task], progress: Callable[[int], None]
) -> Iterator[SkillSequence]:
    """The skills of every rollout, one after the other; each adds to ``progress``."""
    by_id = {task.task_id: task for task in tasks}
    for count, trajectory in enumerate(iterate_rollouts(BASE_ROLLOUTS, tokens=False), 1):
        yield SkillSequence(
            task_id=trajectory.task_id,
            rollout_index=trajectory.rollout_index,
            won=trajectory.won,
            skills=skill_sequence(projection, by_id[trajectory.task_id], trajectory),
        )
        progress(count)
