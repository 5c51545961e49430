"""The paths of the files that stages write; dvc.yaml names the same paths as outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from skillpress.core.storage import atomic_path
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection

TASKS = Path("data/tasks")
BASE_POLICY = Path("models/base")
POLICY = Path("models/policy")
CHECKPOINTS = Path("checkpoints")
BASE_ROLLOUTS = Path("data/rollouts/base.parquet")
PASS_RATES = Path("data/rollouts/pass_rates.parquet")
KEPT_TASKS = Path("data/kept/train.parquet")
"""The training tasks that ``tasks.keep`` leaves; all of them if it is null."""
TRAINING_ROLLOUTS = Path("data/rollouts/training.parquet")
TRAINING_ADVANTAGES = Path("data/rollouts/training_advantages.parquet")
FLOOR_ROLLOUTS = Path("data/rollouts/floors.parquet")
EVALUATION_ROLLOUTS = Path("data/rollouts/evaluation.parquet")
SEQUENCES = Path("data/skills/sequences.parquet")
DICTIONARY = Path("data/skills/dictionary.json")
START_SKILLS = Path("data/skills/start.json")
"""The successes and phrases that ``skills.start`` lets training begin with."""
RESULTS = Path("results")
HISTORY = Path("results/dictionaries.json")
LIBRARY = Path("results/library.json")
SELECTED = Path("results/checkpoint.json")
PHRASES = Path("results/phrases.csv")
GRADES = Path("results/grades.parquet")
"""Written by ``skillpress judge-answers`` and by no stage."""

PROBES = Path("results/probes.parquet")

SPLITS = ("train", "validation", "test")
UNSEEN = "unseen"
"""A further split; its file exists if ``tasks.unseen`` is more than 0."""
EXPLORER, START, TRAINED = "explorer", "start", "trained"
POLICIES = EXPLORER, START, TRAINED
"""Every experiment evaluates these three policies; they are the rows of all tables."""


def split_file(split: str) -> Path:
    """The path of a split's tasks."""
    return TASKS / f"{split}.parquet"


def load_tasks(environment: EnvironmentSection) -> dict[str, list[Task]]:
    """All splits, checked together, so that no stage ever works on overlapping ones.

    Raises:
        StorageError: a file is missing or damaged.
        TaskError: the tasks belong to another environment, or splits overlap.
    """
    there = [*SPLITS, *([UNSEEN] if split_file(UNSEEN).exists() else [])]
    splits = {split: read_tasks(split_file(split)) for split in there}
    environment.check_tasks([task for tasks in splits.values() for task in tasks])
    return splits


def write_curve(path: Path, rows: Iterable[Mapping[str, float]]) -> None:
    """Write a CSV file with one row per step, for plots; a metric that a row lacks is left empty."""
    with atomic_path(path) as temporary:
        pl.DataFrame(list(rows), infer_schema_length=None).write_csv(temporary)
