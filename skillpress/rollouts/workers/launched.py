"""Ranks that are started by a launcher: torchrun, ``deepspeed``, or srun with the variables of these two set.

Each process is one rank of the training, on one or several machines, and reads its rank from its environment.
These ranks have no common parent process. When a rank is lost, the others notice it in their next collective,
check which ranks are still alive, and name the missing ones. The launcher ends the remaining ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from skillpress.core.errors import UserError
from skillpress.rollouts.workers.ranks import RankError, Work

Result = TypeVar("Result")

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""The variables that a launcher sets. torch reads the last two itself."""
NEIGHBOURS = "LOCAL_WORLD_SIZE"
"""The number of ranks on this machine. torchrun sets it; other launchers need not."""


class LaunchError(UserError):
    """A launcher's variables are incomplete or do not fit the experiment."""


@dataclass(frozen=True)
class Launch:
    """This process among those that a launcher started together."""

    rank: int
    size: int
    local_rank: int
    """The rank's number on its machine."""
    local_size: int
    """The number of ranks on its machine; all of them if the launcher does not set it."""


def launch_of_environment(environment: Mapping[str, str] = os.environ) -> Launch | None:
    """This process's launch; None without a launcher, ``LaunchError`` for broken variables."""
    missing = [name for name in VARIABLES if name not in environment]
    if {"RANK", "WORLD_SIZE"} <= set(missing):
        return None
    if missing:
        raise LaunchError(f"started by a launcher, but {', '.join(missing)} is not set in the environment")
    try:
        rank, local, size = (int(environment[name]) for name in VARIABLES[:3])
        neighbours = int(environment.get(NEIGHBOURS, size))
    except ValueError as error:
        raise LaunchError(f"one of {', '.join(VARIABLES[:3])} is not a number: {error}") from None
    return Launch(rank, size, local, neighbours)


def take_part(work: Work[Result], launch: Launch, processes: int, on_report: Callable[[Any], None]) -> Result:
    """Return the result of ``work`` on this rank.

    Args:
        processes: the number of ranks that the experiment requires.
        on_report: called on rank 0 with rank 0's reports.

    Raises:
        LaunchError: the launcher started a different number of ranks.
        RankError: other ranks were lost; the message names them.
    """
    rank, size = launch.rank, launch.size
    if size != processes:
        raise LaunchError(
            f"processes is {processes}, but the launcher started {size} ranks: start {processes}, or set "
            f"processes to {size}, which makes it another experiment"
        )
    try:
        return work(rank, size, on_report if rank == 0 else lambda value: None)
    except RuntimeError as error:  # torch raises it if a collective fails
        from skillpress.rollouts.workers.distributed import missing_ranks

        missing = missing_ranks(rank, size)
        if not missing:
            raise
        named = ", ".join(map(str, missing))
        raise RankError(f"rank {rank} stopped: rank {named} does not answer") from error
