"""Stage: keep the training tasks that the start policy wins neither too rarely nor too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.experiment.kept_tasks import kept_tasks, read_pass_rates
from skillpress.pipeline.files import KEPT_TASKS, PASS_RATES, RESULTS, split_file

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/kept/train.parquet, the tasks that training plays, and how many were dropped for which
    reason."""
    tasks, rates = read_tasks(split_file("train")), read_pass_rates(PASS_RATES)
    kept, counts = kept_tasks(tasks, rates, stage.params.tasks.keep)
    write_tasks(KEPT_TASKS, kept)
    write_json(RESULTS / "kept_tasks.json", counts.to_json())
    stage.run.log_metrics({f"kept_tasks/{name}": float(count) for name, count in counts.to_json().items()})
