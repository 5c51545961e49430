"""Stage: reinforcement learning, resumed from its last checkpoint when it was interrupted."""

from __future__ import annotations

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage


def main(stage: Stage) -> None:
    """Write models/policy and which step's it is, the learning curve and the phrases of every step."""
    from skillpress.environments import bundle
    from skillpress.evaluation.weights import kept, write_kept
    from skillpress.training.loop import TrainingJob, forget_checkpoints, train
    from tasks.data import (
        BASE_POLICY,
        CHECKPOINTS,
        HISTORY,
        KEPT,
        POLICY,
        RESULTS,
        load_tasks,
        split_file,
        write_curve,
    )  # fmt: skip

    params = stage.params
    load_tasks(bundle(params.environment.name))  # refuses splits that overlap
    job = TrainingJob(
        params, split_file("train"), split_file("validation"), BASE_POLICY, POLICY, HISTORY, CHECKPOINTS
    )
    with stage.progress(params.training.steps, "step") as progress:

        def on_step(step: int, metrics: dict[str, float]) -> None:
            progress(step, success=metrics["success"])
            stage.run.log_metrics(metrics, step)

        curve = train(job, on_step)
    write_curve(RESULTS / "training.csv", curve)
    write_kept(KEPT, kept(params.training.keep, curve))
    stage.run.log_file(HISTORY)
    forget_checkpoints(job)


if __name__ == "__main__":
    leave(run_stage("train_policy", main))
