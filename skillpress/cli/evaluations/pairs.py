"""Two finished evaluations side by side, and whether they may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.cli.evaluations.folder import EvaluationFolder, EvaluationRecord, splits_of
from skillpress.cli.evaluations.parameters import without_idle
from skillpress.core.errors import UserError
from skillpress.core.trajectory import Task
from skillpress.evaluation.statistics import EvaluationSteps, evaluation_steps


@dataclass(frozen=True)
class Finished:
    """One finished evaluation, read from its folder."""

    path: Path
    record: EvaluationRecord
    tasks: tuple[Task, ...]
    steps: EvaluationSteps

    @property
    def votes(self) -> int:
        """k, the votes per task."""
        return int(self.record.parameters["evaluation"]["votes"])

    @property
    def runs(self) -> int:
        """Independent runs."""
        return int(self.record.parameters["evaluation"]["runs"])

    @property
    def deciding(self) -> dict[str, Any]:
        """The parameters that affect the episodes."""
        return without_idle(self.record.parameters)

    def of(self, part: str) -> EvaluationSteps:
        """The steps of the episodes of a subset of the tasks."""
        return self.steps.of(splits_of(self.tasks)[part])


ID = "id"
"""The field that always identifies a task."""
Pair = tuple[Finished, Finished]
"""An evaluation of A and one of B, of the same tasks."""


def read(path: Path) -> Finished:
    """The evaluation of a folder.

    Raises:
        StorageError: there is no evaluation, or it is damaged or unfinished.
    """
    folder = EvaluationFolder(path)
    return Finished(path, folder.read(), tuple(folder.tasks()), evaluation_steps(folder.rollouts()))


def check(pairs: Sequence[Pair], identity: Sequence[str] = ()) -> None:
    """Refuse evaluations that do not measure the same thing.

    Args:
        identity: the fields that identify a task, in addition to its id; empty means all.

    Raises:
        UserError: they differ in the environment, in how often each task was played, or in the step
            budget; or, within a pair, in the tasks.
    """
    reference = pairs[0][0]
    for other in (one for pair in pairs for one in pair):
        for what, mine, theirs in (
            ("the environment", reference.record.environment, other.record.environment),
            ("k, episodes of each task in a run", reference.votes, other.votes),
            ("the number of runs", reference.runs, other.runs),
            ("the step budget T", reference.record.max_steps, other.record.max_steps),
        ):
            if mine != theirs:
                raise UserError(
                    f"{reference.path} and {other.path}: {what} is {mine} in one and {theirs} in the other"
                )
    for first, second in pairs:
        check_tasks(first, second, identity)


def check_tasks(first: Finished, second: Finished, identity: Sequence[str] = ()) -> None:
    """Refuse to compare an evaluation with itself, and evaluations of different tasks."""
    for name in identity:
        if name != ID and not any(name in task.spec for task in first.tasks):
            raise UserError(f"--identity: no task of {first.path} has a field {name}")
    if first.path.resolve() == second.path.resolve():
        raise UserError(f"{first.path}: was named twice; name two different evaluations")
    mine, theirs = (
        {(task.task_id, repr(sorted(_wanted(task, identity)))) for task in one.tasks}
        for one in (first, second)
    )
    if unlike := mine ^ theirs:
        raise UserError(
            f"{first.path} and {second.path} did not play the same tasks ({len(unlike)} are in only one of "
            f"them, such as {min(unlike)[0]}); evaluate both with the same --environment, --tasks and "
            "--seed. If only fields such as a prompt differ, name those that identify a task: --identity id"
        )


def fields_that_differ(first: Finished, second: Finished) -> list[str]:
    """The fields in which tasks with the same id differ."""
    theirs = {task.task_id: task.spec for task in second.tasks}
    both = [(task.spec, theirs.get(task.task_id, task.spec)) for task in first.tasks]
    names = {name for pair in both for spec in pair for name in spec}
    return sorted(name for name in names if any(a.get(name) != b.get(name) for a, b in both))


def _wanted(task: Task, identity: Sequence[str]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in task.spec.items() if not identity or name in identity]
