"""Classes of tasks within classes: a stratum is a path, such as ``ood/pick_clean_then_place_in_recep``.

Every beginning of the path is a class too, so one field of the task tells both the split of a test set
(``ood``) and the task type within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from skillpress.core.trajectory import Task


def within(stratum: str, part: str) -> bool:
    """Whether a stratum is the class ``part`` or lies in it."""
    return stratum == part or stratum.startswith(f"{part}/")


def halves(tasks: Iterable[Task]) -> list[str]:
    """The first parts of strata that have two, sorted: ``iid`` and ``ood``."""
    return sorted({task.stratum.split("/")[0] for task in tasks if "/" in task.stratum})


def classes(strata: Iterable[str]) -> list[str]:
    """Every stratum and every beginning of one, sorted."""
    paths = [stratum.split("/") for stratum in strata]
    return sorted({"/".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)})


def by_stratum(episodes: pl.DataFrame, tasks: Sequence[Task]) -> dict[str, pl.DataFrame]:
    """Each class to the rows of its tasks' episodes."""
    members: dict[str, list[str]] = {name: [] for name in classes(task.stratum for task in tasks)}
    for task in tasks:
        for name in classes([task.stratum]):
            members[name].append(task.task_id)
    return {name: episodes.filter(pl.col("task_id").is_in(ids)) for name, ids in members.items()}
