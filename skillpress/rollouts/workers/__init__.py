"""A pool of supervised worker processes, independent of what the jobs do."""

from __future__ import annotations

from skillpress.rollouts.workers.pool import WorkerPool, cores
from skillpress.rollouts.workers.ranks import RankError, run_ranks
from skillpress.rollouts.workers.worker import Failure, WorkerLimits, WorkerPoolError

__all__ = ["Failure", "RankError", "WorkerLimits", "WorkerPool", "WorkerPoolError", "cores", "run_ranks"]
