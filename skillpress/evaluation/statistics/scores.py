"""One number per training seed and task, and which of them count as one task in a mean.

Test tasks are *crossed* with seeds if every training is tested on the same games (ALFWorld's 274), *nested*
in seeds if each seed draws its own (Countdown), and in between if each draws some of the same games. The mean
is the mean of the seeds' means. In every case, a task that several seeds played is one task: its scores are
in one column, and the statistics count columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.intervals import effective_tasks


@dataclass(frozen=True)
class Scores:
    """Success rates of a policy per task, or differences between two policies."""

    values: NDArray[np.float64]
    """One row per training seed, one column per task; NaN if the seed was not tested on the task."""

    @classmethod
    def of(cls, seeds: Sequence[pl.DataFrame]) -> Scores:
        """The scores from one frame per seed with ``task_id`` and ``score``, each task once."""
        names = pl.concat(frame.select("task_id") for frame in seeds).unique().sort("task_id")
        columns = names.with_row_index("column")
        values = np.full((len(seeds), names.height), np.nan)
        for row, frame in zip(values, seeds, strict=True):
            found = frame.join(columns, on="task_id")
            row[found["column"].to_numpy()] = found["score"].to_numpy()
        return cls(values)

    @property
    def seeds(self) -> int:
        """Number of trainings that were tested."""
        return int(self.values.shape[0])

    @property
    def tasks(self) -> int:
        """Number of different tasks that they were tested on."""
        return int(self.values.shape[1])

    def tasks_per_seed(self) -> NDArray[np.int64]:
        """Number of tasks that each seed played."""
        return np.asarray((~np.isnan(self.values)).sum(axis=1))

    def shared_tasks(self) -> int:
        """Number of tasks that more than one seed played."""
        return int(((~np.isnan(self.values)).sum(axis=0) > 1).sum())

    def seed_means(self) -> NDArray[np.float64]:
        """Each seed's mean over its tasks."""
        return np.asarray(np.nanmean(self.values, axis=1))

    def mean(self) -> float:
        """The mean of the seeds' means."""
        return float(self.seed_means().mean())

    def deviations(self) -> NDArray[np.float64]:
        """Every score less its seed's mean; 0 where the seed did not play the task."""
        return np.asarray(np.nan_to_num(self.values - self.seed_means()[:, None], nan=0.0))

    def per_task(self) -> NDArray[np.float64]:
        """One value per task. Their mean is :meth:`mean`, and only the tasks make them scatter.

        If crossed, it is the task's mean over the seeds. If nested, it is the task's score with its seed's
        mean moved to the common one. Values are rounded, so that equal shares tie exactly.
        """
        shares = self.deviations() / (self.seeds * self.tasks_per_seed()[:, None])
        return np.asarray((self.mean() + self.tasks * shares.sum(axis=0)).round(12))

    def effective_tasks(self) -> float:
        """The number of equally weighted tasks that carries the same information."""
        played = ~np.isnan(self.values)
        return effective_tasks((played / (self.seeds * self.tasks_per_seed()[:, None])).sum(axis=0))
