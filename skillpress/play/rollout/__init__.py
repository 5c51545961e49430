"""Many episodes at once: the collector, which keeps every slot busy, and the environments in the slots."""

from __future__ import annotations

from skillpress.play.rollout.collector import CollectionStoppedError, Collector
from skillpress.play.rollout.episode_log import EpisodeLog
from skillpress.play.rollout.ordered import write_in_order
from skillpress.play.rollout.requests import EpisodeRequest, Requests, requests
from skillpress.play.rollout.statistics import CollectionStatistics
from skillpress.play.rollout.thread_vector import ThreadVectorEnv
from skillpress.play.rollout.vector import (
    BrokenEnvironmentError,
    SeparateEnvironments,
    StepResult,
    SyncVectorEnv,
    VectorEnvironment,
)
from skillpress.play.rollout.worker_vector import WorkerVectorEnv

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
