"""A pilot's policies are compared on tasks that are in no split of their experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lag import changed
from benchmarks.unseen_tasks import unseen_tasks
from skillpress.core.task_files import write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.files import SPLITS, split_file

PARAMS = changed(load_params("params.yaml"), tasks={"train": 20, "validation": 6, "test": 5})


def workspace(params: Params, folder: Path) -> dict[str, set[str]]:
    """The tasks in a run's folder; their ids by split."""
    sizes = SplitSizes(params.tasks.train, params.tasks.validation, params.tasks.test)
    tasks = list(params.environment.checked_tasks(sizes, params.seed))
    for split in SPLITS:
        write_tasks(folder / split_file(split), [task for task in tasks if task.split == split])
    return {split: {task.task_id for task in tasks if task.split == split} for split in SPLITS}


def test_validation_tasks_come_first_and_then_such_as_no_split_has(tmp_path: Path) -> None:
    ids = workspace(PARAMS, tmp_path)
    found = [task.task_id for task in unseen_tasks(PARAMS, tmp_path, 16)]
    assert set(found[:6]) == ids["validation"]
    assert len(set(found)) == 16
    assert not set(found) & (ids["train"] | ids["test"])


def test_more_tasks_than_there_are_is_an_error(tmp_path: Path) -> None:
    workspace(PARAMS, tmp_path)
    with pytest.raises(ValueError, match=r"--tasks: is 100; there are \d+ that training did not draw"):
        unseen_tasks(PARAMS, tmp_path, 100)
