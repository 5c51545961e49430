"""Stage: make the tasks of all splits, filtered, disjoint and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from skillpress.core.storage import named_disk_errors, write_json
from skillpress.core.task_files import write_tasks
from skillpress.pipeline.files import RESULTS, UNSEEN, split_file

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/tasks/{train,validation,test}.parquet, unseen.parquet if the parameters ask for such tasks,
    the number of tasks per stratum, and how many were dropped for which reason."""
    params = stage.params
    environment = params.environment
    sizes = params.tasks.make()
    with named_disk_errors(split_file(UNSEEN)):  # an earlier experiment in this folder may have left it
        split_file(UNSEEN).unlink(missing_ok=True)
    with stage.progress(sizes.train + sizes.validation + sizes.test + sizes.unseen, "task") as progress:
        made = environment.splits(sizes, params.seed, progress)
    for split, tasks in made.items():
        write_tasks(split_file(split), tasks)
    strata = sorted({task.stratum for tasks in made.values() for task in tasks})
    counts: dict[str, Mapping[str, object]] = {
        split: {"tasks": len(tasks)}
        | {stratum: sum(task.stratum == stratum for task in tasks) for stratum in strata}
        for split, tasks in made.items()
    }
    if (dropped := environment.dropped()) is not None:
        counts["dropped"] = dropped
    write_json(RESULTS / "tasks.json", counts)
    stage.run.log_metrics({f"tasks/{split}": len(tasks) for split, tasks in made.items()})
