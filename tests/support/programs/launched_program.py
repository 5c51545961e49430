"""One rank as started by a launcher: it sums ones forever, and marks its first sum in the folder ARGV[1]."""

from __future__ import annotations

import sys
from pathlib import Path

from skillpress.rollouts.workers.distributed import Ranks, join_ranks
from skillpress.rollouts.workers.launched import launch_of_environment, take_part
from skillpress.rollouts.workers.ranks import Report

FOLDER = Path(sys.argv[1])


def add_up(rank: int, size: int, report: Report) -> None:
    ranks = Ranks(rank, size)
    join_ranks(ranks, None, timeout_seconds=120)
    while ranks.sum({"one": 1.0})["one"] == size:
        (FOLDER / str(rank)).touch()


if __name__ == "__main__":
    launch = launch_of_environment()
    assert launch is not None
    take_part(add_up, launch, 2, lambda value: None)
