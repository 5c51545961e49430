"""A file's lines as tasks.

A line names its split, or tasks are divided by the experiment's seed. The program gets the entire line except
the key ``hidden``, which only the verifier sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.section import ProgramSection
from skillpress.environments.program.skills import projection
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "program"
SPLITS = ("train", "validation", "test", "unseen")


def make_tasks(parameters: ProgramParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        TaskError: the file cannot be read, a line has no id, or there are too few tasks.
    """
    path = parameters.tasks_file
    rows = list(_rows(path))
    if parameters.agent is not None:
        _check_prompts(path, parameters.agent, rows)
    yield from divide(rows, sizes, seed, ENVIRONMENT, path)


def divide(
    rows: Sequence[Mapping[str, Any]], sizes: SplitSizes, seed: int, environment: str, path: Path
) -> Iterator[Task]:
    """Make an environment's tasks from rows: a row names its split, or the seed chooses one.

    Args:
        path: the file of the rows, for error messages.

    Raises:
        TaskError: there are too few of them.
    """
    named = [str(row.get("split") or "") for row in rows]
    free = [row for row, split in zip(rows, named, strict=True) if not split]
    order = generator(seed, "program tasks").permutation(len(free))
    drawn = iter([free[place] for place in order])
    for split in SPLITS:
        size = getattr(sizes, split)
        own = [row for row, its in zip(rows, named, strict=True) if its == split]
        chosen = (own + list(islice(drawn, max(0, size - len(own)))))[:size]
        if len(chosen) < size:
            raise TaskError(
                f"environment.tasks: {path} has {len(rows)} tasks, of which {len(chosen)} are left for "
                f"tasks.{split}, which asks for {size}"
            )
        yield from (_task(row, split, seed, environment) for row in chosen)


def _check_prompts(path: Path, agent: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for number, row in enumerate(rows, 1):
        if not isinstance(row.get("prompt"), str) or not row["prompt"].strip():
            raise TaskError(
                f"environment.tasks: {path}, task {number} ({row['id']}): lacks a text `prompt`, which the "
                f"agent {agent} needs"
            )


def identities(parameters: ProgramParameters) -> dict[str, str]:
    """A hash of the file of tasks, of the table of rules if there is one, of a coding agent's file and its
    version, and of each file and each skill that is copied for the program.

    Raises:
        TaskError: the file of tasks cannot be read.
        ParamsError: the table of rules is wrong; the message names the error and the remedy.
    """
    return of_program(parameters, {"environment.tasks": parameters.tasks_file})


def of_program(parameters: ProgramSection, files: dict[str, Path]) -> dict[str, str]:
    """A hash of each of these files, and of the other files that a program's section names."""
    if parameters.rules is not None:
        projection(parameters)  # before minutes are spent
        files["environment.rules"] = parameters.rules_file
    for name, path in parameters.copied.items():
        inner = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        files |= {f"environment.files: {name}/{each.relative_to(path)}": each for each in inner}
    try:
        found = {name: blake2b(file.read_bytes()).hexdigest()[:32] for name, file in files.items()}
    except OSError as error:
        raise TaskError(f"environment.tasks: {error.filename} cannot be read: {error}") from error
    if (agent := parameters.agent_file()) is not None:
        told = json.dumps([agent.model_dump(mode="json"), agent.version()], sort_keys=True)
        found[f"environment.agent: {parameters.agent}"] = blake2b(told.encode()).hexdigest()[:32]
    return found


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse tasks of another environment, and an id that occurs twice."""
    refuse_repetitions(tasks, ENVIRONMENT, "task", lambda task: task.task_id)


def _task(row: Mapping[str, Any], split: str, seed: int, environment: str) -> Task:
    identity = str(row["id"])
    return Task(
        identity,
        environment,
        seed=derive(seed, identity),
        spec=dict(row),
        split=split,
        stratum=str(row.get("stratum") or ""),
    )


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        if path.suffix == ".parquet":
            found = pl.read_parquet(path).to_dicts()
        else:
            found = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise TaskError(f"environment.tasks: {path} cannot be read: {error}") from error
    for number, row in enumerate(found, 1):
        if not isinstance(row, dict) or row.get("id") in (None, ""):
            raise TaskError(f"environment.tasks: {path}, line {number}: must be an object with an `id`")
        if row.get("split") not in (None, "", *SPLITS):
            raise TaskError(
                f"environment.tasks: {path}, line {number}: split is {row['split']!r}, must be one of "
                f"{', '.join(SPLITS)}"
            )
        yield row
