"""Stage: let the start policy act in training tasks, to see what its successes are made of."""

from __future__ import annotations

import time

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage


def main(stage: Stage) -> None:
    """Write data/rollouts/base.parquet, and how fast and how successfully it was sampled."""
    from skillpress.assembly import (
        collector_of,
        engine_of,
        environment_of,
        language_agent,
        training_sampling,
    )
    from skillpress.policy import load_policy
    from skillpress.rollout import Journal, requests
    from skillpress.storage import write_json
    from skillpress.trajectory import write_rollouts
    from tasks.data import BASE_POLICY, BASE_ROLLOUTS, RESULTS, load_tasks, split_file, unfinished

    params = stage.params
    tasks = load_tasks(environment_of(params))["train"][: params.rollouts.tasks]
    policy = load_policy(BASE_POLICY, params.policy.dtype)
    actor = language_agent(params, policy, engine_of(params, policy), training_sampling(params))
    wanted = requests(tasks, params.rollouts.per_task, params.seed, "base")
    work = unfinished(stage, split_file("train"), BASE_POLICY)
    started = time.perf_counter()
    with (
        collector_of(params, actor) as collector,
        stage.progress(len(wanted), "episode") as progress,
        Journal(work) as journal,
    ):
        progress(len(wanted) - len(journal.missing(wanted)))
        journal.play(collector, wanted, on_episode=progress.advance)
    seconds = time.perf_counter() - started
    trajectories = journal.trajectories(wanted)
    write_rollouts(BASE_ROLLOUTS, trajectories)
    statistics = collector.statistics
    metrics = {
        "success": sum(trajectory.won for trajectory in trajectories) / len(trajectories),
        "episodes": float(len(trajectories)),
        "environment_steps": float(sum(len(trajectory.steps) for trajectory in trajectories)),
        "environment_steps_per_second": statistics.environment_steps / seconds,
        "decisions_per_environment_step": statistics.decisions / max(statistics.environment_steps, 1),
    }
    write_json(RESULTS / "rollouts.json", metrics)
    stage.run.log_metrics({f"rollouts/{name}": value for name, value in metrics.items()})
    work.forget()


if __name__ == "__main__":
    leave(run_stage("collect_rollouts", main))
