"""A pool of supervised worker processes that knows no domain."""

from __future__ import annotations

from skillpress.workers.pool import WorkerPool, cores
from skillpress.workers.ranks import RankError, run_ranks
from skillpress.workers.worker import Failure, Limits, WorkerPoolError

__all__ = ["Failure", "Limits", "RankError", "WorkerPool", "WorkerPoolError", "cores", "run_ranks"]
