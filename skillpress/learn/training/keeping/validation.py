"""Finds the best checkpoint of a training run, if ``training.keep`` asks for its weights.

The candidates are the steps after which a checkpoint is due, and the last step. After each of them every
validation task is played once, sampled as in training and with the same seeds each time. The test tasks are
not used. ``skillpress.learn.training.keeping.selected_checkpoint`` chooses the step.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.core.storage import atomic_directory
from skillpress.core.trajectory import Task
from skillpress.play.rollout import Collector, requests
from skillpress.play.workers.distributed import Ranks


def validate(collector: Collector, tasks: Sequence[Task], seed: int, step: int, ranks: Ranks) -> float:
    """The share of the tasks that the policy after ``step`` wins. Each rank plays some of them."""
    wanted = requests(tasks[ranks.rank :: ranks.size], 1, seed, "validation")
    won = sum(trajectory.won for trajectory in collector.collect(wanted, step))
    return ranks.sum({"won": float(won)})["won"] / len(tasks)


def copy_policy(source: Path, destination: Path) -> None:
    """Copy a model folder atomically.

    Raises:
        StorageError: the source does not exist.
    """
    if not source.is_dir():
        raise StorageError(f"{source}: missing, though the checkpoint counts on it; delete {source.parent}")
    with atomic_directory(destination) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
