"""A folder of tasks in Harbor's format as tasks. Needs that cannot be met here are counted by name."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.harbor.parameters import HarborParameters
from skillpress.environments.harbor.roots import folder_digest
from skillpress.environments.harbor.task_files import HarborTask, read_tasks
from skillpress.environments.program.tasks import divide, of_program
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

_LOG = logging.getLogger(__name__)
ENVIRONMENT = "harbor"
SHOWN = 3
"""Maximum number of tasks that a message names for each need."""


def make_tasks(section: HarborParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        TaskError: a task cannot be read or played, or there are too few.
    """
    tasks = playable(section)
    unknown = Counter(name for task in tasks for name in task.settings.unknown())
    if unknown:
        said = ", ".join(f"{name} {count}" for name, count in sorted(unknown.items()))
        _LOG.warning("note: environment.tasks: fields without effect, and number of tasks: %s", said)
    if counts := dropped(section):
        _LOG.warning(
            "note: environment.leave_out: number of tasks by what they need: %s", counts[ENVIRONMENT]
        )
    rows = [{"id": task.name, "prompt": task.steps[0].instruction} for task in tasks]
    yield from divide(rows, sizes, seed, ENVIRONMENT, section.folder)


def playable(section: HarborParameters) -> list[HarborTask]:
    """The tasks that can be played here.

    Raises:
        TaskError: a task's needs cannot be met and ``leave_out`` is false, or no task is left.
    """
    tasks = read_tasks(section.folder)
    lacking = _lacking(section, tasks)
    left = {name for names in lacking.values() for name in names}
    if left and not section.leave_out:
        said = "; ".join(f"{need} {_some(names)}" for need, names in sorted(lacking.items()))
        raise TaskError(
            f"environment.tasks: {section.folder}: needs of {len(left)} of {len(tasks)} tasks cannot be "
            f"met with root {section.root}: {said}. environment.leave_out: true leaves them out; "
            "environment.play_without names needs that do not matter"
        )
    kept = [task for task in tasks if task.name not in left]
    if section.solves and (without := [task.name for task in kept if not task.solved]):
        raise TaskError(f"environment.agent: oracle: tasks without solution/solve.sh: {_some(without)}")
    if not kept:
        raise TaskError(f"environment.tasks: {section.folder}: none of {len(tasks)} tasks is left")
    return kept


def dropped(section: HarborParameters) -> Mapping[str, Mapping[str, int]] | None:
    """Number of tasks by what they need, and ``kept``; None if none is left out. A task may need several."""
    if not section.leave_out:
        return None
    tasks = read_tasks(section.folder)
    lacking = _lacking(section, tasks)
    left = {name for names in lacking.values() for name in names}
    counts = {need: len(names) for need, names in sorted(lacking.items())}
    return {ENVIRONMENT: {**counts, "kept": len(tasks) - len(left)}}


def identities(section: HarborParameters) -> dict[str, str]:
    """A hash of all tasks' folders, and of the other files that a program's section names."""
    content = blake2b(digest_size=16)
    for task in read_tasks(section.folder):
        content.update(f"{task.name}\0{folder_digest(task.folder)}\0".encode())
    return {"environment.tasks": content.hexdigest(), **of_program(section, {})}


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse tasks of another environment, and an id that occurs twice."""
    refuse_repetitions(tasks, ENVIRONMENT, "task", lambda task: task.task_id)


def _some(names: Sequence[str]) -> str:
    """The number of names, and the first few."""
    return f"{len(names)} ({', '.join([*names[:SHOWN], *(['...'] if len(names) > SHOWN else [])])})"


def _lacking(section: HarborParameters, tasks: Sequence[HarborTask]) -> dict[str, list[str]]:
    """Maps each need that cannot be met to the names of its tasks."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        for need in task.needs(section.root) - {*section.play_without}:
            found.setdefault(need, []).append(task.name)
    return found
