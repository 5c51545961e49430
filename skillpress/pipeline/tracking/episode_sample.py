"""Which episodes of a stage become MLflow traces; ``traces.py`` turns them into traces."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from skillpress.core.errors import ParamsError
from skillpress.core.rollout_files import TRAJECTORY_KEY, iterate_rollouts, scan_rollouts
from skillpress.core.trajectory import Trajectory

SETTING = "SKILLPRESS_TRACES"
"""Set in infra/settings.env. It is not a parameter: recording affects no result, so it reruns nothing."""


def most_traces() -> int:
    """The most episodes of a stage that become traces.

    Raises:
        ParamsError: the setting is not a whole number of at least 0.
    """
    value = os.environ.get(SETTING, "0")
    if not value.isdecimal():
        raise ParamsError(f"{SETTING} is {value!r}; a whole number is wanted, 0 for no traces")
    return int(value)


def sample_episodes(rollouts: Path, most: int) -> list[Trajectory]:
    """A sample of at most ``most`` episodes of a file: all episodes of some tasks, which are evenly spaced
    in it. If a single task has more episodes than that, only its first ones.

    Raises:
        StorageError: the file is missing, truncated, or has another schema.
    """
    episodes = scan_rollouts(rollouts).select(TRAJECTORY_KEY).unique(maintain_order=True)
    counted = episodes.group_by("task_id", maintain_order=True).len().collect().rows()
    if not counted:
        return []
    each = max(count for _, count in counted)
    count = min(len(counted), max(1, most // each))
    chosen = [counted[number * len(counted) // count][0] for number in range(count)]
    return list(iterate_rollouts(rollouts, pl.col("task_id").is_in(chosen)))[:most]
