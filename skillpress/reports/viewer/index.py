"""One row per episode of a rollout file, and the place of the episode's rows in the file.

One pass over the narrow columns computes the index, some row groups at a time. Texts and tokens stay on disk,
and a file of 10^6 steps is indexed in less than a second. An episode is later read by the place of its rows,
which loads only the row groups that hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.rollout_files import TAKEN, TRAJECTORY_KEY, scan_rollouts, stretches
from skillpress.core.trajectory import Task
from skillpress.training.loop.describing.trained_episodes import scan_advantages

NARROW = (
    *TRAJECTORY_KEY, "policy", "run", "won", "outcome", "policy_version", "action", "invalid", "reward",
)  # fmt: skip
"""The columns that are read for every row."""


@dataclass(frozen=True)
class IndexedFile:
    """An open rollout file."""

    path: Path
    episodes: pl.DataFrame
    """``first_row``, ``rows`` and the columns of ``EpisodeRow`` that follow from the file, in its order."""
    identity: tuple[int, int, int]
    """Device, inode and time of the file. Another file of the same name has different values."""
    advantages: pl.Series | None
    """Each row's advantage, null if training did not use it; None if the file is not a training's."""

    def rows(self, episode: int, columns: Sequence[str] | pl.Expr) -> pl.DataFrame:
        """The rows of one episode."""
        first, count = self.episodes.select("first_row", "rows").row(episode)
        return self.slice(first, count).select(columns).collect()

    def slice(self, first: int, count: int) -> pl.LazyFrame:
        """A range of rows, lazily.

        Raises:
            StorageError: the file was replaced after it was opened.
        """
        if _identity(self.path) != self.identity:
            raise StorageError(f"{self.path}: has changed since it was opened; start the viewer again")
        return scan_rollouts(self.path).slice(first, count)


def open_rollouts(path: Path, advantages: Path | None = None) -> IndexedFile:
    """Index a rollout file, with the advantages of a training (``training.describing.trained_episodes``).

    Raises:
        StorageError: the file is missing, truncated, of another schema, or was replaced while it was read, or
            the advantages belong to other rows.
    """
    rows = scan_rollouts(path)
    identity = _identity(path)
    tables = [_episodes(stretch) for stretch in stretches(rows, TRAJECTORY_KEY, columns=NARROW)]
    episodes = pl.concat(tables).with_columns(
        first_row=pl.col("rows").cum_sum() - pl.col("rows"),
        reward=pl.when(pl.col("reward").is_finite()).then("reward"),
    )
    worth = None if advantages is None else _advantages(rows, path, advantages)
    if _identity(path) != identity:
        raise StorageError(f"{path}: was replaced while it was read; start the viewer again")
    return IndexedFile(path, _with_means(episodes, worth), identity, worth)


def joined(files: Iterable[IndexedFile], tasks: Sequence[Mapping[str, Task]]) -> pl.DataFrame:
    """All files' episodes with ``source``, ``number`` in it, and their tasks' ``split`` and ``stratum``."""
    parts = [
        file.episodes.with_columns(source=pl.lit(source, pl.Int32), number=pl.int_range(pl.len())).join(
            _task_table(known), on="task", how="left", maintain_order="left"
        )
        for source, (file, known) in enumerate(zip(files, tasks, strict=True))
    ]
    return pl.concat(parts)


def _task_table(tasks: Mapping[str, Task]) -> pl.DataFrame:
    rows = [(name, task.split or None, task.stratum or None) for name, task in tasks.items()]
    schema = {"task": pl.String, "split": pl.String, "stratum": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _episodes(rows: pl.DataFrame) -> pl.DataFrame:
    numbered = rows.with_columns(episode=pl.struct(TRAJECTORY_KEY).rle_id())
    table = numbered.group_by("episode", maintain_order=True).agg(
        rows=pl.len().cast(pl.Int64),
        steps=TAKEN.sum().cast(pl.Int32),
        task=pl.col("task_id").first(),
        group=pl.col("group_id").first(),
        policy=pl.col("policy").first(),
        run=pl.col("run").first(),
        rollout=pl.col("rollout_index").first(),
        version=pl.col("policy_version").first(),
        won=pl.col("won").first(),
        outcome=pl.col("outcome").first(),
        invalid=(pl.col("invalid").is_not_null() & TAKEN).sum().cast(pl.Int32),
        reward=pl.col("reward").sum(),
    )
    joined = table.join(_wrong(numbered), on="episode", how="left", maintain_order="left")
    reason = pl.when(~pl.col("won")).then(pl.coalesce("wrong", "outcome"))
    return joined.with_columns(reason=reason).drop("episode", "wrong")


def _wrong(rows: pl.DataFrame) -> pl.DataFrame:
    """``episode``, ``wrong``: the most common error of its invalid steps (ties: the first by name)."""
    counts = rows.filter(pl.col("invalid").is_not_null() & TAKEN).group_by("episode", "invalid").len()
    ranked = counts.sort("episode", "len", "invalid", descending=[False, True, False])
    return ranked.group_by("episode", maintain_order=True).agg(wrong=pl.col("invalid").first())


def _advantages(rows: pl.LazyFrame, path: Path, advantages: Path) -> pl.Series:
    """One advantage per row of the rollouts."""
    lessons = scan_advantages(advantages).select(*TRAJECTORY_KEY, "advantage").collect()
    if not lessons.select(TRAJECTORY_KEY).equals(rows.select(TRAJECTORY_KEY).collect()):
        raise StorageError(f"{advantages}: its rows are not those of {path}; train again")
    return lessons["advantage"]


def _with_means(episodes: pl.DataFrame, advantages: pl.Series | None) -> pl.DataFrame:
    """``advantage``: the mean over an episode's rows."""
    if advantages is None:
        return episodes.with_columns(advantage=pl.lit(None, pl.Float64))
    place = pl.int_range(pl.len()).repeat_by("rows").explode(empty_as_null=False)
    worth = pl.DataFrame({"episode": episodes.select(place).to_series(), "advantage": advantages})
    means = worth.group_by("episode", maintain_order=True).agg(pl.col("advantage").mean())
    return episodes.with_columns(means["advantage"])


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_mtime_ns
