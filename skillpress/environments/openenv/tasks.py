"""Reset arguments as tasks: consecutive seeds, or the lines of a file.

The first ``tasks.test`` of them are test tasks, the next ``tasks.validation`` are validation tasks, and the
rest are for training, whatever the experiment's seed is: adding training tasks never changes the test tasks.
Two tasks with equal arguments are refused. Whether two seeds play different episodes is up to the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "openenv"


def make_tasks(parameters: OpenEnvParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        TaskError: the file cannot be read, a line is not an object, or there are too few lines.
    """
    resets = _resets(parameters)
    for split, size in (("test", sizes.test), ("validation", sizes.validation), ("train", sizes.train)):
        taken = list(islice(resets, size))
        if len(taken) < size:
            wanted = sizes.test + sizes.validation + sizes.train
            raise TaskError(
                f"environment.resets: {parameters.resets} has fewer than the {wanted} tasks asked for"
            )
        for name, arguments in taken:
            number = arguments.get("seed")
            yield Task(
                task_id=name,
                environment=ENVIRONMENT,
                seed=number if isinstance(number, int) and 0 <= number < 2**63 else 0,
                spec={"url": parameters.url, "reset": dict(arguments)},
                split=split,
            )


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a task set that does not consist of reset arguments, or repeats some."""
    refuse_repetitions(tasks, ENVIRONMENT, "reset", _key)


def _key(task: Task) -> str:
    if not isinstance(task.spec.get("reset"), Mapping):
        raise TaskError(f"task {task.task_id}: spec {dict(task.spec)} has no reset arguments")
    return json.dumps([task.spec.get("url"), task.spec["reset"]], sort_keys=True)


def _resets(parameters: OpenEnvParameters) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (name, reset arguments), in order."""
    if not parameters.resets:
        for number in count(parameters.first_seed):
            yield f"seed-{number}", {"seed": number}
    file = Path(parameters.resets).expanduser()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"environment.resets: {file} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line-{number}", _arguments(line, f"{file}:{number}")


def _arguments(line: str, place: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise TaskError(f"{place}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise TaskError(f'{place}: must be an object such as {{"seed": 7}}, is {line[:80]!r}')
    return found
