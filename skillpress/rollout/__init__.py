"""Many episodes at once: the collector that keeps every slot busy, and where its environments live."""

from __future__ import annotations

from skillpress.rollout.collector import CollectionStatistics, Collector, EpisodeRequest, requests
from skillpress.rollout.episode_log import EpisodeLog
from skillpress.rollout.thread_vector import ThreadVectorEnv
from skillpress.rollout.vector import BrokenEnvironmentError, SyncVectorEnv, VectorEnvironment
from skillpress.rollout.worker_vector import WorkerVectorEnv

__all__ = [
    "BrokenEnvironmentError",
    "CollectionStatistics",
    "Collector",
    "EpisodeLog",
    "EpisodeRequest",
    "SyncVectorEnv",
    "ThreadVectorEnv",
    "VectorEnvironment",
    "WorkerVectorEnv",
    "requests",
]
