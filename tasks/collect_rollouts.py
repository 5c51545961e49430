"""Stage: let the start policy play training tasks, to see how often it wins each, and by which skills."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polars as pl

from skillpress.core.rollout_files import TAKEN, scan_rollouts
from skillpress.core.storage import write_json
from skillpress.experiment.collection import play_episodes
from skillpress.experiment.kept_tasks import write_pass_rates
from skillpress.experiment.start_job import start_job
from skillpress.pipeline.files import BASE_POLICY, BASE_ROLLOUTS, PASS_RATES, RESULTS, load_tasks

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/rollouts/base.parquet, how often each task was won (pass_rates.parquet beside it), and
    figures on speed and success."""
    params = stage.params
    job = start_job(params, load_tasks(params.environment)["train"], BASE_POLICY, stage.store)
    episodes = sum(len(play.wanted) for play in job.plays)
    started = time.perf_counter()
    with stage.progress(episodes, "episode") as progress:
        done = play_episodes(job, BASE_ROLLOUTS, progress.more)
    seconds = time.perf_counter() - started
    steps = scan_rollouts(BASE_ROLLOUTS).filter(TAKEN)
    ends = steps.select((pl.col("won") & (pl.col("step") == 0)).sum().alias("won"), pl.len().alias("steps"))
    won, length = ends.collect().row(0)
    write_pass_rates(PASS_RATES, steps)
    metrics = {
        "success": won / episodes,
        "episodes": float(episodes),
        "environment_steps": float(length),
        "environment_steps_per_second": done.environment_steps / seconds,
        "decisions_per_environment_step": done.decisions / max(done.environment_steps, 1),
    }
    write_json(RESULTS / "rollouts.json", metrics)
    stage.run.log_metrics({f"rollouts/{name}": value for name, value in metrics.items()})
    stage.run.log_episodes(BASE_ROLLOUTS, BASE_POLICY)
