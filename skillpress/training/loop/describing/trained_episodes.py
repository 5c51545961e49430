"""Files with a sample of the episodes that a training has learned from, for people to read.

``data/rollouts/training.parquet`` is a rollout file like any other (``core/trajectory.py``). Next to it is
``data/rollouts/training_advantages.parquet`` (:data:`ADVANTAGE_SCHEMA`), with the same rows in the same
order: its row i describes what row i of the rollouts taught. A training without steps leaves both files
without rows. ``describing/episode_sample.py`` chooses the sample.

An episode's ``group_id`` names the training step for which it was planned (``train/17/<task>``), and
``training_step`` the one that learned from it, which is the same unless its rollouts continue over new
weights (``continuing.py``). Its ``policy_version`` names the weights with which its group began: those after
the previous step or, with ``training.lag``, after one of as many steps before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from skillpress.core.rollout_files import join_rollouts, write_rollouts
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Trajectory

KIND = "advantages"

ADVANTAGE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "group_id": pl.String,
    "rollout_index": pl.Int32,
    "decision": pl.Int32,
    "training_step": pl.Int32,
    "selected": pl.Boolean,
    "advantage": pl.Float64,
    "return": pl.Float64,
    "penalty": pl.Float64,
    "segments": pl.Float64,
}
"""One row per decision of an episode, including its summaries.

- ``task_id``, ``group_id``, ``rollout_index``: the episode (``core.rollout_files.TRAJECTORY_KEY``).
- ``decision`` counts the episode's rows from 0. The rollouts' ``step`` does not count summaries.
- ``training_step``, from 1, learned from it.
- ``selected``: True if the episode taught, False if ``algorithm.select`` left it out. The columns below are
  null if it was left out, and for the further attempts that ``experience`` asked for, which the algorithm
  does not use.
- ``advantage``, of the decision: the algorithm's advantage, or the mean over the response if it gave one per
  token. It is null where nothing was sampled because the prompt did not fit.
- ``return``, of the episode: the sum of all its rewards minus ``penalty``.
- ``penalty``, of the episode: the amount that shaping took off.
- ``segments``, of the episode: seg(s, C), the number of phrases that its skills need under the step's
  dictionary; 0 without a dictionary.
"""


@dataclass(frozen=True)
class TrainedEpisodes:
    """The two files of a training, or of one of its steps."""

    rollouts: Path
    advantages: Path

    def write(self, trajectories: Sequence[Trajectory], lessons: pl.DataFrame) -> None:
        """Write the rollouts and the advantages; ``lessons`` has :data:`ADVANTAGE_SCHEMA`, row by row as
        ``rollout_frame``."""
        write_rollouts(self.rollouts, trajectories)
        write_table(self.advantages, lessons, KIND)

    def join(self, parts: Sequence[TrainedEpisodes]) -> None:
        """Write the rows of the parts, one part after another.

        Raises:
            StorageError: a part is missing, truncated, or of another schema.
        """
        if not parts:
            return self.write([], pl.DataFrame(schema=ADVANTAGE_SCHEMA))
        join_rollouts(self.rollouts, [part.rollouts for part in parts])
        lessons = pl.concat([scan_advantages(part.advantages) for part in parts])
        return write_table(self.advantages, lessons.collect(), KIND)


def scan_advantages(path: str | Path) -> pl.LazyFrame:
    """Rows of :data:`ADVANTAGE_SCHEMA` as a lazy frame.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    return scan_table(path, KIND, ADVANTAGE_SCHEMA)
