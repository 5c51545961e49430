"""Stage: let the start policy act in training tasks, to see what its successes are made of."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polars as pl

from skillpress.environments import bundle
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.rollout import requests
from skillpress.storage import write_json
from skillpress.trajectory import scan_rollouts
from tasks.files import BASE_POLICY, BASE_ROLLOUTS, RESULTS, START, load_tasks

if TYPE_CHECKING:
    from tasks.stage import Stage


def main(stage: Stage) -> None:
    """Write data/rollouts/base.parquet, and how fast and how successfully it was sampled."""
    params = stage.params
    tasks = load_tasks(bundle(params.environment.name))["train"][: params.rollouts.tasks]
    wanted = requests(tasks, params.rollouts.per_task, params.seed, "base", policy=START)
    job = CollectionJob(params, "training", [Play(BASE_POLICY, wanted)], stage.store)
    started = time.perf_counter()
    with stage.progress(len(wanted), "episode") as progress:
        done = play_episodes(job, BASE_ROLLOUTS, progress.more)
    seconds = time.perf_counter() - started
    steps = scan_rollouts(BASE_ROLLOUTS)
    ends = steps.select((pl.col("won") & (pl.col("step") == 0)).sum().alias("won"), pl.len().alias("steps"))
    won, length = ends.collect().row(0)
    metrics = {
        "success": won / len(wanted),
        "episodes": float(len(wanted)),
        "environment_steps": float(length),
        "environment_steps_per_second": done.environment_steps / seconds,
        "decisions_per_environment_step": done.decisions / max(done.environment_steps, 1),
    }
    write_json(RESULTS / "rollouts.json", metrics)
    stage.run.log_metrics({f"rollouts/{name}": value for name, value in metrics.items()})
    stage.store.clear()
