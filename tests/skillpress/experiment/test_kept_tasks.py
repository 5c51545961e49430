"""Which training tasks the start policy's pass rates leave, and why the others are dropped."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from skillpress.core.errors import TaskError
from skillpress.core.task_files import read_tasks, write_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.task_parameters import KeepParameters
from skillpress.experiment.kept_tasks import KeptTasks, kept_tasks, read_pass_rates, write_pass_rates

RATES = {"never": (0, 4), "once": (1, 4), "thrice": (3, 4), "always": (4, 4)}


def task(name: str) -> Task:
    return Task(name, "countdown", 0, {}, "train")


TASKS = [task(name) for name in ("always", "thrice", "unplayed", "never", "once")]


def names(tasks: list[Task]) -> list[str]:
    return [each.task_id for each in tasks]


def test_tasks_between_the_bounds_are_kept_in_their_order_and_the_others_counted_by_reason() -> None:
    kept, counts = kept_tasks(TASKS, RATES, KeepParameters(at_least=0.25, at_most=0.75))
    assert names(kept) == ["thrice", "once"]
    assert counts == KeptTasks(tasks=5, kept=2, below=1, above=1, not_played=1)


@pytest.mark.parametrize(
    ("at_least", "at_most", "left"),
    [(0.0, 0.0, ["never"]), (0.0, 0.25, ["never", "once"]), (1.0, 1.0, ["always"]), (0.3, 0.8, ["thrice"])],
)
def test_both_bounds_belong_to_what_is_kept(at_least: float, at_most: float, left: list[str]) -> None:
    kept, _ = kept_tasks(TASKS, RATES, KeepParameters(at_least=at_least, at_most=at_most))
    assert names(kept) == [name for name in names(TASKS) if name in left]


def test_without_bounds_every_task_is_kept_byte_for_byte(tmp_path: Path) -> None:
    write_tasks(tmp_path / "train.parquet", TASKS)
    kept, counts = kept_tasks(read_tasks(tmp_path / "train.parquet"), RATES, None)
    write_tasks(tmp_path / "kept.parquet", kept)
    assert (tmp_path / "kept.parquet").read_bytes() == (tmp_path / "train.parquet").read_bytes()
    assert counts == KeptTasks(tasks=5, kept=5, below=0, above=0, not_played=0)


def test_if_nothing_is_left_the_error_counts_why_and_names_what_to_change() -> None:
    with pytest.raises(
        TaskError,
        match=r"tasks\.keep: is 0\.4 to 0\.6, and no training task .*: of 5, 2 are below, 2 above, and 1 "
        r"were not played; widen tasks\.keep",
    ):
        kept_tasks(TASKS, RATES, KeepParameters(at_least=0.4, at_most=0.6))


def test_pass_rates_are_counted_from_the_first_steps_of_all_rollouts(tmp_path: Path) -> None:
    rows = [("b", 0, True), ("b", 1, True), ("b", 0, False), ("a", 0, False), ("a", 1, False)]
    steps = pl.DataFrame(rows, schema=["task_id", "step", "won"], orient="row").lazy()
    write_pass_rates(tmp_path / "rates.parquet", steps)
    assert read_pass_rates(tmp_path / "rates.parquet") == {"a": (0, 1), "b": (1, 2)}
