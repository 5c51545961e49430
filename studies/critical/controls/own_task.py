"""A dictionary for each task, fitted to the successes of this task alone: repetition without reuse.

skills:
  dictionaries: studies.critical.controls.own_task:own_task
"""

from __future__ import annotations

from skillpress.core.trajectory import Task


def own_task(task: Task) -> str:
    """The name of the task's own dictionary."""
    return task.task_id
