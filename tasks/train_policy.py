"""Stage: reinforcement learning, resumed from its last checkpoint when it was interrupted."""

from __future__ import annotations

from tasks.stage import Stage, run_stage


def main(stage: Stage) -> None:
    """Write models/policy and the learning curve, one row per step."""
    from skillpress.environments import bundle
    from skillpress.training.loop import TrainingJob, forget_checkpoints, train
    from tasks.data import BASE_POLICY, CHECKPOINTS, POLICY, RESULTS, load_tasks, split_file, write_curve

    params = stage.params
    load_tasks(bundle(params.environment.name))  # refuses splits that overlap
    job = TrainingJob(params, split_file("train"), BASE_POLICY, POLICY, CHECKPOINTS)
    with stage.progress(params.training.steps, "step") as progress:

        def on_step(step: int, metrics: dict[str, float]) -> None:
            progress(step, success=metrics["success"])
            stage.run.log_metrics(metrics, step)

        curve = train(job, on_step)
    write_curve(RESULTS / "training.csv", curve)
    forget_checkpoints(job)


if __name__ == "__main__":
    run_stage("train_policy", main)
