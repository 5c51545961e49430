"""Stage: the page of results, a page of episodes, and the environment's behaviour figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillpress.core.storage import write_json, write_text
from skillpress.pipeline.files import POLICIES, RESULTS
from skillpress.pipeline.finished.episodes import some_episodes
from skillpress.pipeline.finished.report import report_data
from skillpress.pipeline.finished.run import read_run
from skillpress.reports.report.page import render_report

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage

EPISODES = RESULTS / "episodes.html"


def main(stage: Stage) -> None:
    """Write results/report.html, results/episodes.html and results/behavior.json, and keep the pages in
    MLflow."""
    run = read_run(Path())
    data = report_data(run, EPISODES.name)
    behavior = {
        policy: {f.key: f.value for f in result.environment_behavior.figures if f.value is not None}
        for policy, result in zip(POLICIES, data.policies, strict=True)
    }
    write_json(RESULTS / "behavior.json", behavior)
    page = RESULTS / "report.html"
    write_text(page, render_report(data))
    ran = f"{run.played}, {run.method.label}, seed {run.seed}"
    write_text(EPISODES, some_episodes(Path(), f"Episodes of {ran}", run.seed))
    stage.run.log_summary({f"{policy}/{k}": v for policy, row in behavior.items() for k, v in row.items()})
    stage.run.log_file(page)
    stage.run.log_file(EPISODES)
