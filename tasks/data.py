"""Where the stages leave what they make; dvc.yaml names the same paths as outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from skillpress.environments import EnvironmentBundle
from skillpress.skills import SkillDictionary, load_dictionary, save_dictionary
from skillpress.skills.mdl_report import PHRASE_COLUMNS, phrase_table
from skillpress.storage import StorageError, atomic_path, read_json, write_text
from skillpress.trajectory import Task, read_tasks
from skillpress.unfinished import Unfinished, experiment_key

if TYPE_CHECKING:
    from tasks.stage import Stage

TASKS = Path("data/tasks")
BASE_POLICY = Path("models/base")
POLICY = Path("models/policy")
CHECKPOINTS = Path("checkpoints")
BASE_ROLLOUTS = Path("data/rollouts/base.parquet")
EVALUATION_ROLLOUTS = Path("data/rollouts/evaluation.parquet")
SEQUENCES = Path("data/skills/sequences.parquet")
DICTIONARY = Path("data/skills/dictionary.json")
RESULTS = Path("results")
HISTORY = Path("results/dictionaries.json")
KEPT = Path("results/checkpoint.json")
PHRASES = Path("results/phrases.csv")

SPLITS = ("train", "validation", "test")


def split_file(split: str) -> Path:
    """The file of a split's tasks."""
    return TASKS / f"{split}.parquet"


def unfinished(stage: Stage, *inputs: Path) -> Unfinished:
    """Where a stage keeps what it has done until it ends, by all that decides its result."""
    values = {"stage": stage.name, **stage.params.model_dump(mode="json")}
    return Unfinished(CHECKPOINTS, experiment_key(values, inputs))


def load_tasks(bundle: EnvironmentBundle) -> dict[str, list[Task]]:
    """All splits, checked together, so that no stage ever works on contaminated ones.

    Raises:
        StorageError: a file is missing or damaged.
        ValueError: the tasks are not the environment's, or splits overlap.
    """
    splits = {split: read_tasks(split_file(split)) for split in SPLITS}
    bundle.check_tasks([task for tasks in splits.values() for task in tasks])
    return splits


def write_curve(path: Path, rows: Iterable[Mapping[str, float]]) -> None:
    """A CSV file with one row per step, for plots; a metric that a row lacks is left empty."""
    with atomic_path(path) as temporary:
        pl.DataFrame(list(rows), infer_schema_length=None).write_csv(temporary)


def save_fitted(dictionary: SkillDictionary | None) -> None:
    """Write the fitted dictionary; JSON's ``null`` where no success was there to fit one to."""
    if dictionary is None:
        write_text(DICTIONARY, "null\n")
    else:
        save_dictionary(DICTIONARY, dictionary)


def write_phrases(dictionary: SkillDictionary | None, corpus: Sequence[Sequence[str]]) -> None:
    """Write the dictionary's phrases, what each is used and worth, as CSV; only heads without one."""
    table = phrase_table(dictionary, corpus) if dictionary else pl.DataFrame(schema=PHRASE_COLUMNS)
    with atomic_path(PHRASES) as temporary:
        table.write_csv(temporary)


def load_phrases() -> pl.DataFrame:
    """The table that :func:`write_phrases` wrote.

    Raises:
        StorageError: it is missing or damaged.
    """
    try:
        return pl.read_csv(PHRASES, schema=PHRASE_COLUMNS)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(f"{PHRASES}: cannot be read ({error}); run the stage that makes it") from error


def load_fitted() -> SkillDictionary | None:
    """The dictionary that :func:`save_fitted` wrote.

    Raises:
        StorageError: it is missing or damaged.
    """
    return None if read_json(DICTIONARY) is None else load_dictionary(DICTIONARY)
