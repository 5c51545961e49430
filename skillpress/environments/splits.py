"""Disjoint splits: no policy is tested on a task that it was trained on, by the key that makes two tasks the
same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task


def disjoint_splits(
    tasks: Sequence[Task], environment: str, what: str, key_of: Callable[[Task], str]
) -> dict[str, str]:
    """Return the split of every key.

    Args:
        what: name of the keys in errors (``puzzle``, ``game``, ``recipe``).
        key_of: returns the key of a task; raises ``TaskError`` for a task of another environment.

    Raises:
        TaskError: a task belongs to another environment, or two splits share a key.
    """
    splits: dict[str, str] = {}
    for task in tasks:
        if task.environment != environment:
            raise TaskError(f"task {task.task_id} belongs to {task.environment!r}, not to {environment!r}")
        key = key_of(task)
        other = splits.setdefault(key, task.split)
        if other != task.split:
            raise TaskError(f"splits overlap: {what} {key} is in {other} and in {task.split}")
    return splits


def refuse_repetitions(
    tasks: Sequence[Task], environment: str, what: str, key_of: Callable[[Task], str]
) -> None:
    """Refuse splits that are not disjoint, and keys that occur twice in one split.

    Raises:
        TaskError: see :func:`disjoint_splits`; or tasks repeat another task's key (the message counts them).
    """
    repeated = len(tasks) - len(disjoint_splits(tasks, environment, what, key_of))
    if repeated:
        raise TaskError(f"{repeated} tasks repeat a {what} of their own split")
