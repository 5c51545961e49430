"""Many episodes at once: the collector, which keeps every slot busy, and the environments in the slots."""

from __future__ import annotations

from skillpress.rollouts.collection.collector import CollectionStoppedError, Collector
from skillpress.rollouts.collection.episode_log import EpisodeLog
from skillpress.rollouts.collection.ordered import write_in_order
from skillpress.rollouts.collection.requests import EpisodeRequest, Requests, requests
from skillpress.rollouts.collection.statistics import CollectionStatistics
from skillpress.rollouts.collection.thread_vector import ThreadVectorEnv
from skillpress.rollouts.collection.vector import (
    BrokenEnvironmentError,
    SeparateEnvironments,
    StepResult,
    SyncVectorEnv,
    VectorEnvironment,
)
from skillpress.rollouts.collection.worker_vector import WorkerVectorEnv

__all__ = [
    "BrokenEnvironmentError",
    "CollectionStatistics",
    "CollectionStoppedError",
    "Collector",
    "EpisodeLog",
    "EpisodeRequest",
    "Requests",
    "SeparateEnvironments",
    "StepResult",
    "SyncVectorEnv",
    "ThreadVectorEnv",
    "VectorEnvironment",
    "WorkerVectorEnv",
    "requests",
    "write_in_order",
]
