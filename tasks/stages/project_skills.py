"""Stage: from actions to skills, s = φ(τ), for every rollout of the start policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.environments import bundle
from skillpress.trajectory import SkillSequence, read_rollouts, write_sequences
from tasks.files import BASE_ROLLOUTS, SEQUENCES, load_tasks

if TYPE_CHECKING:
    from tasks.stage import Stage


def main(stage: Stage) -> None:
    """Write data/skills/sequences.parquet."""
    environment = bundle(stage.params.environment.name)
    tasks = {task.task_id: task for task in load_tasks(environment)["train"]}
    trajectories = read_rollouts(BASE_ROLLOUTS)
    sequences = []
    with stage.progress(len(trajectories), "trajectory") as progress:
        for count, trajectory in enumerate(trajectories, 1):
            labels = environment.projection(tasks[trajectory.task_id], trajectory)
            sequences.append(
                SkillSequence(
                    task_id=trajectory.task_id,
                    rollout_index=trajectory.rollout_index,
                    won=trajectory.won,
                    skills=tuple(label for label in labels if label is not None),
                    labels=labels,
                )
            )
            progress(count)
    write_sequences(SEQUENCES, sequences)
    steps = sum(len(sequence.labels) for sequence in sequences)
    labelled = sum(len(sequence.skills) for sequence in sequences)
    stage.run.log_metrics({"skills/sequences": len(sequences), "skills/labelled_share": labelled / steps})
