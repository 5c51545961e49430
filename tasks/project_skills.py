"""Stage: from actions to skills, s = φ(τ), for every rollout of the start policy."""

from __future__ import annotations

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage


def main(stage: Stage) -> None:
    """Write data/skills/sequences.parquet."""
    from skillpress.environments import bundle
    from skillpress.trajectory import SkillSequence, read_rollouts, write_sequences
    from tasks.data import BASE_ROLLOUTS, SEQUENCES, load_tasks

    world = bundle(stage.params.environment.name)
    tasks = {task.task_id: task for task in load_tasks(world)["train"]}
    trajectories = read_rollouts(BASE_ROLLOUTS)
    sequences = []
    with stage.progress(len(trajectories), "trajectory") as progress:
        for count, trajectory in enumerate(trajectories, 1):
            labels = world.projection(tasks[trajectory.task_id], trajectory)
            skills = tuple(label for label in labels if label is not None)
            sequences.append(
                SkillSequence(trajectory.task_id, trajectory.rollout_index, trajectory.won, skills, labels)
            )
            progress(count)
    write_sequences(SEQUENCES, sequences)
    steps = sum(len(sequence.labels) for sequence in sequences)
    labelled = sum(len(sequence.skills) for sequence in sequences)
    stage.run.log_metrics({"skills/sequences": len(sequences), "skills/labelled_share": labelled / steps})


if __name__ == "__main__":
    leave(run_stage("project_skills", main))
