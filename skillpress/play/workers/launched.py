"""Ranks that a launcher starts: torchrun, ``deepspeed``, or srun with the variables of these two set.

Each process is one rank of the training, on one machine or on several, and learns from its environment
which one. Nobody stands above the ranks here: when one of them is lost the others find out in their next
collective, ask who is still there, and name those who do not answer. The launcher ends what is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from skillpress.core.errors import UserError
from skillpress.play.workers.ranks import RankError, Work

Result = TypeVar("Result")

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What a launcher sets; torch reads the last two itself."""
NEIGHBOURS = "LOCAL_WORLD_SIZE"
"""How many ranks share this machine; torchrun sets it, others need not."""


class LaunchError(UserError):
    """A launcher's variables are incomplete, or do not fit the experiment."""


@dataclass(frozen=True)
class Launch:
    """This process among those that a launcher started together."""

    rank: int
    size: int
    local_rank: int
    """Its number on its machine."""
    local_size: int
    """How many there are on its machine; all, where the launcher does not say."""


def launch_of_environment(environment: Mapping[str, str] = os.environ) -> Launch | None:
    """This process among those of its launcher; None where no launcher started it.

    Raises:
        LaunchError: some of the variables are missing or are no numbers.
    """
    missing = [name for name in VARIABLES if name not in environment]
    if {"RANK", "WORLD_SIZE"} <= set(missing):
        return None
    if missing:
        raise LaunchError(f"started by a launcher, but {', '.join(missing)} is not set in the environment")
    try:
        rank, local, size = (int(environment[name]) for name in VARIABLES[:3])
        neighbours = int(environment.get(NEIGHBOURS, size))
    except ValueError as error:
        raise LaunchError(f"of {', '.join(VARIABLES[:3])} one is no number: {error}") from None
    return Launch(rank, size, local, neighbours)


def take_part(work: Work[Result], launch: Launch, processes: int, on_report: Callable[[Any], None]) -> Result:
    """What ``work`` returns on this rank.

    Args:
        processes: the ranks that the experiment is made for.
        on_report: told what rank 0 reports, on rank 0.

    Raises:
        LaunchError: the launcher started another number of ranks.
        RankError: other ranks were lost; the message names them.
    """
    rank, size = launch.rank, launch.size
    if size != processes:
        raise LaunchError(
            f"processes is {processes}, but the launcher started {size} ranks: start {processes}, or set "
            f"processes to {size}, which is another experiment"
        )
    try:
        return work(rank, size, on_report if rank == 0 else lambda value: None)
    except RuntimeError as error:  # what torch raises where a collective fails
        from skillpress.play.workers.distributed import missing_ranks

        missing = missing_ranks(rank, size)
        if not missing:
            raise
        named = ", ".join(map(str, missing))
        raise RankError(f"rank {rank} goes no further: nothing is heard from rank {named}") from error
